-- Leases the pages that slots.sql found. In the queue each of them gets the due time held_due: the expected next due
-- time, but after the end of the lease, so that no other call finds the page while the lease runs. If its report
-- confirms held_due, nothing moves.

-- A host after it gave pages: its first revisit and its first new page, how many new pages it may give before its next
-- revisit (new_credit), and its places in the two queues of hosts (place_after_visit). If its class of new pages
-- changes, it does not keep its place among new pages.
create or replace function host_after(
    h host, o host_visited, a ask
) returns table (
    head_due timestamptz, head_new_rank real, head_new_id bigint, new_credit real, new_class smallint,
    ready_at timestamptz, new_ready_at timestamptz
)
language sql stable rows 1
begin atomic
    select n.head_due, n.head_new_rank, n.head_new_id, n.new_credit, c.new_class,
           place_after_visit(
               h.ready_at, not o.is_new, n.is_back_soon,
               greatest(n.head_due, f.next_slot, o.busy_until, a.t), a.t),
           place_after_visit(
               h.new_ready_at, o.is_new or (h.new_class = c.new_class) is not true, n.is_back_soon,
               greatest(f.next_slot, o.busy_until, a.t), a.t)
    from (select coalesce(o.last_start_by, h.last_start_by)
                 + gap_of(h, a.s) as next_slot
         ) f
    cross join lateral (
        select case when o.is_new then least(h.head_due, o.head_due)
                    else coalesce(o.head_due, 'infinity') end as head_due,
               case when o.is_new then o.head_new_rank else h.head_new_rank end as head_new_rank,
               case when o.is_new then o.head_new_id else h.head_new_id end as head_new_id,
               credit_after(h.new_credit, o.is_new, o.given, h.head_due <= a.t, (a.s).discovery) as new_credit,
               o.busy_until is null and f.next_slot <= a.slots_until + interval '10 seconds' as is_back_soon
    ) n
    cross join lateral (select class_in_line(n.head_new_rank, n.head_due, n.new_credit, a.t) as new_class) c;
end;

-- One round of next_pages: gives the next pages of the locked hosts their slots, leases them and returns them.
create or replace function hand_out(a ask, v visits, this_lease bigint, round int) returns setof recrawl.page_to_fetch
language plpgsql volatile as $$
-- plans: inherited; writes queue, new_page, host, lease; locks nothing: the caller holds the hosts
#variable_conflict use_column
begin
    return query
    with
    -- The candidates. fate: given = it is leased now; dropped = it is dead, and its row is deleted; stays = no change.
    picked as materialized (
        select k.*, p.url, p.attempts, p.value, p.meta,
               case when p.base_at is null then p.etag end as etag,
               case when p.base_at is null then p.last_modified end as last_modified,
               case when p.base_at is null then p.content_hash end as content_hash,
               case when not k.may_be_taken then 'stays'
                    when (p.state = 'live') is not true then 'dropped'
                    -- a newer call took it between two rounds of this call; it was reported, and is due again
                    when p.last_lease >= this_lease then 'stays'
                    else 'given' end as fate,
               greatest(next_due(coalesce(k.due_at, k.slot), k.slot,
                                 page_frequency(p.frequency, p.pinned_rate, (a.s).frequency), (a.s).shortest_interval),
                        a.lease_ends + longest_ahead()) as held_due
        from slots_of(a, v) k
        left join lateral (select * from page where page_id = case when k.may_be_taken then k.page_id end offset 0) p
            on true
    ),
    -- Revisits stay in the queue, with a due time after the lease.
    revisit_moved as (
        update queue q set due_at = p.held_due from picked p
        where q.ctid = p.tid and p.fate = 'given' and p.rank is null
    ),
    -- Rows of pages that are no longer live are deleted.
    revisit_dropped as (
        delete from queue q using picked p where q.ctid = p.tid and p.fate = 'dropped' and p.rank is null
    ),
    -- A page is new once: its row in new_page is deleted.
    new_left as (
        delete from new_page n using picked p where n.ctid = p.tid and p.fate <> 'stays' and p.rank is not null
    ),
    -- A new page that is handed out enters the queue, with a due time after the lease.
    new_entered as (
        insert into queue (host_id, page_id, due_at)
        select host_id, page_id, held_due from picked where fate = 'given' and rank is not null
    ),
    -- The hosts, as rows of the type host_visited.
    visited as (
        select host_tid, bool_or(is_new) as is_new,
               count(*) filter (where fate = 'given') as given, count(*) filter (where fate = 'dropped') as dropped,
               max(start_by) filter (where fate = 'given') as last_start_by,
               case when bool_or(one_at_a_time) and bool_or(fate = 'given') then a.lease_ends end as busy_until,
               min(case fate when 'given' then held_due when 'stays' then due_at end) as head_due,
               min(rank) filter (where fate = 'stays') as head_new_rank,
               min(page_id) filter (where fate = 'stays' and rank is not null) as head_new_id
        from picked group by host_tid
    ),
    -- The hosts get new heads and new places in the queues of hosts.
    host_moved as (
        update host h set
            last_start_by = coalesce(o.last_start_by, h.last_start_by),
            handed_out = h.handed_out + o.given, pages = h.pages - o.dropped,
            busy_until = o.busy_until, busy_lease = case when o.busy_until is not null then this_lease end,
            (head_due, head_new_rank, head_new_id, new_credit, new_class, ready_at, new_ready_at) = (
                select n.* from host_after(h, row(o.*)::host_visited, a) n)
        from visited o where h.ctid = o.host_tid returning h.new_class
    ),
    -- Later calls find the classes of new pages that these hosts are in now. It runs because the last query reads it.
    classes_noted as (select note_classes(bit_or(1::bigint << new_class)) from host_moved),
    -- The arrays are in the order of page ids, because report() finds a page by binary search.
    leased as (
        insert into lease (lease_id, round, handed_out_at, lease_until, unreported, new_pages, page_ids, slots,
                           start_bys, dues, held_dues, busy_hosts)
        select this_lease, round, a.t, a.lease_ends, count(*), count(rank), array_agg(page_id), array_agg(slot),
               array_agg(start_by), array_agg(coalesce(due_at, slot)), array_agg(held_due),
               array_agg(host_id) filter (where one_at_a_time)
        from (select * from picked where fate = 'given' order by page_id) p having count(*) > 0
    )
    select page_id, url, name, slot, least(start_by, a.lease_ends), greatest(slot - a.t, interval '0'),
           this_lease, a.lease_ends, attempts + 1, value, etag, last_modified, content_hash, meta
    from picked cross join classes_noted where fate = 'given' order by slot;
end $$;
