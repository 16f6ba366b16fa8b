-- Finds the next pages of the locked hosts, and their slots. Writes nothing.
--
-- slots_of() is inlined into the plan of hand_out(), so it has no search_path of its own and is not volatile. Cost: one
-- index scan for each host, over its queue or its new pages, from the head on. Table sizes do not matter.

-- The next pages of the locked hosts with their slots: revisits of the due_hosts, new pages of the new_hosts. A host
-- without such a page has one row without a page. The row of a revisit has a due_at and no rank, and tid is its row in
-- queue. The row of a new page has a rank and no due_at, and tid is its row in new_page.
create or replace function slots_of(a ask, v visits)
returns table (
    host_tid tid, is_new boolean, host_id bigint, name text, one_at_a_time boolean,
    slot timestamptz, start_by timestamptz, may_be_taken boolean, tid tid, page_id bigint, due_at timestamptz, rank real
)
language sql stable
begin atomic
    with
    -- The hosts, locked by the caller, and how many pages each should give (quota). The quotas of the hosts for
    -- revisits add up to due_pages, the quotas of the hosts for new pages add up to new_pages.
    visit as (
        select l.*, l.pages / l.hosts + (l.place % l.hosts < l.pages % l.hosts)::int as quota
        from (select h.tid, h.place,
                     h.place > cardinality(v.due_hosts) as is_new,
                     case when h.place > cardinality(v.due_hosts) then v.new_pages else v.due_pages end as pages,
                     cardinality(case when h.place > cardinality(v.due_hosts) then v.new_hosts
                                      else v.due_hosts end) as hosts
              from unnest(v.due_hosts || v.new_hosts) with ordinality as h (tid, place)
              offset 0) l
    ),
    -- When each host is free, and how many pages it may give.
    ready as materialized (
        select h.ctid as host_tid, i.is_new, h.host_id, h.name, h.head_due, h.head_new_rank, h.head_new_id,
               h.one_at_a_time, g.gap, e.step, f.free_at, f.slots_end,
               least(n.slots, case when h.one_at_a_time then 1 else i.quota end) as quota
        from visit i
        join host h on h.ctid = i.tid
        cross join lateral (select gap_of(h, a.s) as gap offset 0) g
        cross join lateral (select g.gap + start_window(g.gap, (a.s).window_share) as step offset 0) e
        cross join lateral (
            select greatest(h.last_start_by + g.gap, a.slots_from) as free_at, slots_end(a, e.step) as slots_end
            offset 0
        ) f
        cross join lateral (
            select greatest(0, 1 + floor(date_part('epoch', f.slots_end - f.free_at) / date_part('epoch', e.step)))::int
                as slots
            offset 0
        ) n
    ),
    -- The pages of each host in order, of the kind that the host was chosen for. One page more than can be taken: the
    -- first page that stays is the new head.
    waiting as (
        select r.*, w.tid, w.page_id, w.due_at, w.rank,
               row_number() over (partition by r.host_id order by w.due_at, w.rank, w.page_id) as place
        from ready r
        left join lateral (
            (select queue.ctid as tid, queue.page_id, queue.due_at, null::real as rank
             from queue
             where not r.is_new and queue.host_id = r.host_id and queue.due_at >= r.head_due
             order by queue.due_at
             limit r.quota + 1)
            union all
            (select new_page.ctid, new_page.page_id, null, new_page.rank
             from new_page
             where r.is_new and new_page.host_id = r.host_id
               and (new_page.rank, new_page.page_id) >= (r.head_new_rank, r.head_new_id)
             order by new_page.rank, new_page.page_id
             limit r.quota + 1)
        ) w on true
    ),
    -- The slots. A slot is the latest of three times: when the host is free, when the page is due, and one step (gap +
    -- window) after the slot before. For all places at once, with k and j from 0: slot(k) = k * step + the maximum of
    -- free_at and due(j) - j * step over all j <= k. Example: free at 0, due at 0, 0 and 9, a step of 2: slots 0, 2, 9.
    slotted as (
        select w.*,
               (w.place - 1) * w.step
                   + max(greatest(w.free_at, w.due_at - (w.place - 1) * w.step))
                         over (partition by w.host_id order by w.place) as slot
        from waiting w
    )
    select s.host_tid, s.is_new, s.host_id, s.name, s.one_at_a_time, s.slot, s.slot + s.step - s.gap,
           s.tid is not null and s.place <= s.quota and s.slot <= s.slots_end and (s.rank <= v.worst_rank) is not false,
           s.tid, s.page_id, s.due_at, s.rank
    from slotted s;
end;
