-- What hosts have to hand out, and when: the half of the pop that only reads.
--
-- Inlined into the pop's plan, so it is neither pinned nor volatile and names everything in full. Its cost: an index
-- scan over each host's queue from its head up. Neither the size of the tables nor what is not due yet matters.

create or replace function recrawl_internal.slots_of(
    hosts tid[], most int, wanted int, t timestamptz, slots_until timestamptz,
    default_gap interval, start_within real, discovery real
) returns table (
    host_tid tid, host_id bigint, name text, gap interval, one_at_a_time boolean,
    slot timestamptz, start_by timestamptz, is_taken boolean, tid tid, page_id bigint, due_at timestamptz, rank real
)
language sql stable
as $$
    with
    -- The hosts, locked by the caller: when each is free, and how many pages it should give. The shares add up to
    -- wanted.
    ready as materialized (
        select h.ctid as host_tid, h.host_id, h.name, h.head_due, h.head_new_rank, h.head_new_id, h.balance,
               h.one_at_a_time, g.gap,
               g.gap + recrawl_internal.start_window(g.gap, start_within) as step,
               greatest(h.last_start_by + g.gap, t) as free_at,
               case when h.one_at_a_time then 1
                    else least(most, wanted / cardinality(hosts) + (locked.place <= wanted % cardinality(hosts))::int)
               end as share
        from unnest(hosts) with ordinality as locked (tid, place)
        join recrawl_internal.host h on h.ctid = locked.tid
        cross join lateral (
            select recrawl_internal.host_gap(h.gap, h.crawl_delay, default_gap) as gap offset 0
        ) g
    ),
    -- Their pages in order: new ones and revisits take turns. One more than can be taken: the first that stays is the
    -- new head.
    waiting as (
        select r.host_tid, r.host_id, r.name, r.gap, r.step, r.free_at, r.share, r.one_at_a_time,
               w.tid, w.page_id, w.due_at, w.rank,
               row_number() over (
                   partition by r.host_id
                   order by coalesce(w.due_at > t, false), w.turn, w.due_at, w.rank, w.page_id
               ) as place
        from ready r
        left join lateral (
            (select q.tid, q.page_id, q.due_at, null::real as rank,
                    row_number() over (order by q.due_at) / nullif(1 - discovery, 0) as turn
             from (select queue.ctid as tid, queue.page_id, queue.due_at
                   from recrawl_internal.queue
                   where queue.host_id = r.host_id and queue.due_at >= r.head_due
                   order by queue.due_at
                   limit most + 1) q)
            union all
            (select n.tid, n.page_id, null, n.rank,
                    r.balance + row_number() over (order by n.rank, n.page_id) / nullif(discovery, 0)
             from (select new_page.ctid as tid, new_page.page_id, new_page.rank
                   from recrawl_internal.new_page
                   where new_page.host_id = r.host_id
                     and (new_page.rank, new_page.page_id) >= (r.head_new_rank, r.head_new_id)
                   order by new_page.rank, new_page.page_id
                   limit most + 1) n)
        ) w on true
    ),
    -- Their slots. A slot is the later of the page's due time and a step (a gap and a window) after the slot before:
    -- over all places at once, slot(k) = k steps + the greatest, over j up to k, of (what place j waits for − j steps).
    slotted as (
        select w.*,
               (w.place - 1) * w.step
                   + max(greatest(w.free_at, w.due_at - (w.place - 1) * w.step))
                         over (partition by w.host_id order by w.place) as slot
        from waiting w
    )
    select s.host_tid, s.host_id, s.name, s.gap, s.one_at_a_time, s.slot, s.slot + s.step - s.gap,
           s.tid is not null and s.place <= s.share and s.slot <= slots_until,
           s.tid, s.page_id, s.due_at, s.rank
    from slotted s
$$;
comment on function recrawl_internal.slots_of(tid[], int, int, timestamptz, timestamptz, interval, real, real) is
    'The next pages of hosts, at most most of each and wanted in all, with their slots; a row without a page where '
    'a host has none left.';
