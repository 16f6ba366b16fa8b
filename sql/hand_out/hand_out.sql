-- The half of next_pages that writes. A page that is handed out gets a due time after the end of its lease, so that no
-- other call finds it.

create or replace function recrawl_internal.hand_out(
    t timestamptz, v recrawl_internal.visits, split numeric, slots_until timestamptz, per_host int,
    lease_ends timestamptz, this_lease bigint, round int, notice interval, s recrawl_internal.setting
) returns setof recrawl.page_to_fetch
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited; writes queue, new_page, host, lease; locks nothing: the caller holds the hosts
#variable_conflict use_column
declare
    held_until constant timestamptz := lease_ends + longest_ahead();     -- no leased page is due before this
begin
    return query
    with
    -- The pages and their rows. Rows of pages that are no longer live are taken only to be deleted. The lease ids of a
    -- page must ascend: a page that a call with a higher lease id had since this call began stays in the queue.
    picked as materialized (
        select k.*,
               coalesce(p.is_live and p.is_next, false) as given,
               k.is_taken and not coalesce(p.is_live, false) as dropped,
               greatest(next_due(coalesce(k.due_at, k.slot), k.slot, p.frequency, s.shortest_interval),
                        held_until) as held_due,
               p.url, p.attempts, p.value, p.etag, p.last_modified, p.content_hash, p.meta
        from slots_of(v, split, t + notice, slots_until, per_host, s) k
        left join lateral (
            select p.url, p.attempts, p.value, p.meta,
                   case when p.base_at is null then p.etag end as etag,
                   case when p.base_at is null then p.last_modified end as last_modified,
                   case when p.base_at is null then p.content_hash end as content_hash,
                   p.state = 'live' as is_live,
                   coalesce(p.last_lease, 0) < this_lease as is_next,
                   page_frequency(p.frequency, p.pinned_rate, s.frequency) as frequency
            from page p
            where k.is_taken and p.page_id = k.page_id
            offset 0
        ) p on true
    ),
    -- Revisits stay in the queue, with a due time after the lease.
    revisit_moved as (
        update queue q set due_at = p.held_due from picked p where q.ctid = p.tid and p.given and p.rank is null
    ),
    -- Rows of pages that are no longer live are deleted.
    revisit_dropped as (
        delete from queue q using picked p where q.ctid = p.tid and p.dropped and p.rank is null
    ),
    -- A page is new once: its row in new_page is deleted.
    new_left as (
        delete from new_page n using picked p where n.ctid = p.tid and (p.given or p.dropped) and p.rank is not null
    ),
    -- It enters the queue, with a due time after the lease.
    new_entered as (
        insert into queue (host_id, page_id, due_at)
        select host_id, page_id, held_due from picked where given and rank is not null
    ),
    -- Each host after this round. Heads: the first page that stays or was moved; null if its queue is empty.
    left_over as (
        select host_tid,
               bool_or(is_new) as is_new,
               min(gap) as gap,
               count(*) filter (where given) as given,
               count(*) filter (where dropped) as dropped,
               max(start_by) filter (where given) as last_start_by,
               min(case when given then held_due when not dropped then due_at end) as head_due,
               min(rank) filter (where not given and not dropped) as head_new_rank,
               min(page_id) filter (where not given and not dropped and rank is not null) as head_new_id,
               case when bool_or(one_at_a_time) and bool_or(given) then lease_ends end as busy_until
        from picked group by host_tid
    ),
    -- The host gets a new place in the queue of hosts that it was chosen from. In the other queue it keeps its place if
    -- that place is already due, although the host is in its gap: so neither kind is always first. It keeps the place
    -- only if the next slot is near, because scans begin at the first place of the queue.
    host_moved as (
        update host h set
            last_start_by = coalesce(o.last_start_by, h.last_start_by),
            fetches = h.fetches + o.given,
            pages = h.pages - o.dropped,
            busy_until = o.busy_until,
            busy_lease = case when o.busy_until is not null then this_lease end,
            (head_due, head_new_rank, head_new_id, new_credit, new_class, ready_at, new_ready_at) = (
                select a.head_due, a.head_new_rank, a.head_new_id, a.new_credit, c.new_class,
                       case when o.is_new and h.ready_at <= t and a.is_back_soon then h.ready_at
                            else when_ready(a.head_due, a.next_slot, null, o.busy_until, t) end,
                       case when not o.is_new and h.new_ready_at <= t and a.is_back_soon
                                 and h.new_class = c.new_class then h.new_ready_at
                            else when_ready(null, a.next_slot, null, o.busy_until, t) end
                from (select coalesce(o.last_start_by, h.last_start_by) + o.gap as next_slot,
                             case when o.is_new then least(h.head_due, o.head_due)
                                  else coalesce(o.head_due, 'infinity') end as head_due,
                             case when o.is_new then o.head_new_rank else h.head_new_rank end as head_new_rank,
                             case when o.is_new then o.head_new_id else h.head_new_id end as head_new_id,
                             o.busy_until is null and coalesce(o.last_start_by, h.last_start_by) + o.gap
                                 <= slots_until + interval '10 seconds' as is_back_soon,
                             credit_after(h.new_credit, o.is_new, o.given, h.head_due <= t, s.discovery) as new_credit
                     ) a
                cross join lateral (
                    select class_in_line(a.head_new_rank, a.head_due, a.new_credit, t) as new_class
                ) c)
        from left_over o
        where h.ctid = o.host_tid
        returning h.new_class
    ),
    -- The arrays are in the order of page ids, because report() finds a page by binary search.
    leased as (
        insert into lease (lease_id, round, popped_at, lease_until, unreported, new_pages,
                           page_ids, slots, start_bys, dues, held_dues, busy_hosts)
        select this_lease, round, t, lease_ends, count(*), count(rank),
               array_agg(page_id), array_agg(slot), array_agg(start_by), array_agg(coalesce(due_at, slot)),
               array_agg(held_due),
               array_agg(host_id) filter (where one_at_a_time)
        from (select * from picked where given order by page_id) p
        having count(*) > 0
    )
    select page_id, url, name, slot, least(start_by, lease_ends), greatest(slot - t, interval '0'),
           this_lease, lease_ends, attempts + 1, value, etag, last_modified, content_hash, meta
    from picked
    where given and (select note_classes(bit_or(1::bigint << new_class)) from host_moved)    -- once
    order by slot;
end $$;
comment on function recrawl_internal.hand_out(
    timestamptz, recrawl_internal.visits, numeric, timestamptz, int, timestamptz, bigint, int, interval,
    recrawl_internal.setting
) is
    'One round of next_pages: gives the next pages of the locked hosts their slots, leases them and returns them.';
