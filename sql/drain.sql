-- Applies what the inbox holds to the queue, under host locks: new pages enter, due times move, dead pages leave.
-- Bounded, and it passes over hosts that a pop holds: their entries wait for the next drain. A backlog is worked off for a
-- sixteenth of the hosts at a time, so that pops find the other hosts free, popular ones too.

-- Entries without an old place bring a page in. Entries with one do nothing when the page is no longer there (it was handed
-- out meanwhile, and whoever holds its lease will say where it goes next). Those without a new place take it out, if it is dead.
create or replace function recrawl_internal.drain_at(t timestamptz, max_entries int) returns int
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    -- Where the entries begin: found once, for what was drained lately is still in the index before it.
    first   timestamptz;
    slices  int;                       -- how many slices the hosts are in; the oldest entry says whose turn it is
    slice   int;
    reach   int;                       -- how many of the oldest entries are looked at
    locked  bigint[];
    applied int;
    failing record;
    s       setting;
begin
    select at, host_id % 16 into first, slice
    from inbox where at >= from_micros((select last_value from inbox_horizon)) order by at limit 1;
    if first is null then
        return 0;
    end if;
    slices := case when exists (select from inbox where at >= first order by at offset least(max_entries, 200) limit 1) then 16 else 1 end;
    reach := max_entries * slices;

    select * into s from setting;
    loop
        -- Hosts first, in a statement of their own: the next one sees what their last holders did.
        locked := array(
            select distinct host_id
            from (select host_id from inbox where at >= first order by at limit reach) oldest
            where host_id % slices = slice % slices);
        locked := array(
            select h.host_id from host h where h.host_id = any (locked) order by h.host_id for update skip locked);
        exit when cardinality(locked) > 0 or reach = max_entries * 64;
        -- Somebody holds these hosts, for how long nobody knows: the others must not wait.
        slices := 1;
        reach := max_entries * 64;
    end loop;

    -- «(… in (select …)) is true» stays a hashed subplan; as a join of two CTEs it would compare every pair.
    for failing in
        with oldest as (
            select *
            from (select ctid as tid, at, page_id, host_id from inbox where at >= first order by at limit reach) o
            where (host_id in (select unnest(locked))) is true
            order by at
            limit max_entries
        ),
        -- One entry of a page at a time: the next may start where this one ends.
        first_of_page as (
            select distinct on (page_id) tid from oldest order by page_id, at
        ),
        taken_out as (
            delete from inbox i using first_of_page f where i.ctid = f.tid returning i.*
        ),
        -- Who leaves for good is decided here, where the host's queue holds still: a page that lives again meanwhile goes to the
        -- due time that its row says.
        entry as materialized (
            select e.host_id, e.page_id, e.old_due, e.old_rank, e.new_rank, e.failed, e.revived,
                   e.old_due is null and e.old_rank is null as is_first, p.state = 'live' as is_live,
                   e.new_due is null and e.new_rank is null and p.state <> 'live' as leaves,
                   case when e.new_due is null and e.new_rank is null and p.state = 'live' then p.due_at
                        when e.revived and p.state <> 'live' then null
                        else e.new_due end as new_due
            from taken_out e
            left join lateral (
                select p.state, p.due_at from page p
                where (e.old_due is null and e.old_rank is null or e.new_due is null and e.new_rank is null) and p.page_id = e.page_id
                offset 0
            ) p on true
        ),
        -- Old places, one look-up each: a plain join would be planned the other way round where a table was empty once, and read
        -- all of it for every entry when it has grown.
        place as materialized (
            select e.page_id, e.leaves, e.new_due, n.tid as new_tid, q.tid as queue_tid
            from entry e
            left join lateral (
                select n.ctid as tid from new_page n where (n.host_id, n.rank, n.page_id) = (e.host_id, e.old_rank, e.page_id) offset 0
            ) n on true
            left join lateral (
                select q.ctid as tid from queue q where (q.host_id, q.due_at, q.page_id) = (e.host_id, e.old_due, e.page_id) offset 0
            ) q on true
        ),
        left_new as (
            delete from new_page n using place p where n.ctid = p.new_tid returning n.page_id
        ),
        left_queue as (
            delete from queue q using place p where p.leaves and q.ctid = p.queue_tid returning q.page_id
        ),
        moved as (
            update queue q set due_at = p.new_due from place p where p.new_due is not null and q.ctid = p.queue_tid
        ),
        entering as materialized (
            select * from entry e
            where not leaves
              and case
                  -- Only where the page has no place any more: it may be out, or never have left.
                  when revived then
                      new_due is not null
                      and (e.page_id in (select q.page_id from queue q where q.host_id in (select r.host_id from entry r where r.revived))) is not true
                      and (e.page_id in (select n.page_id from new_page n where n.host_id in (select r.host_id from entry r where r.revived))) is not true
                  -- A page that died before it came in stays out.
                  else is_first and is_live or (page_id in (select page_id from left_new)) is true
              end
        ),
        entered_queue as (
            insert into queue (host_id, page_id, due_at)
            select host_id, page_id, new_due from entering where new_due is not null
        ),
        entered_new as (
            insert into new_page (host_id, page_id, rank)
            select host_id, page_id, new_rank from entering where new_rank is not null
        ),
        learnt as (
            select e.host_id,
                   count(*) filter (where e.is_first and (e.page_id in (select page_id from entering)) is true)
                       - count(*) filter (where e.leaves and (e.page_id in (select page_id from left_new union all select page_id from left_queue)) is true)
                       as more_pages,
                   count(*) filter (where e.failed)::int as failures,
                   count(*) as entries,
                   min(e.new_due) as due,
                   -- The least rank with the least id: maybe no page's own, but below every page's.
                   min(e.new_rank) as rank,
                   min(e.page_id) filter (where e.new_rank is not null) as id
            from entry e
            group by e.host_id
        ),
        woken as (
            update host h set
                pages = h.pages + l.more_pages,
                head_due = least(h.head_due, l.due),
                head_new_rank = least(h.head_new_rank, l.rank),
                head_new_id = least(h.head_new_id, l.id),
                -- A host that is ready stays where it is in the index: the update is then a cheap one (HOT).
                ready_at = case when h.ready_at <= t then h.ready_at
                                else when_ready(least(h.head_due, l.due), least(h.head_new_id, l.id),
                                                   h.last_slot_at + host_gap(h.gap, h.crawl_delay, s.default_gap), h.blocked_until, h.busy_until, t) end
            from learnt l
            where h.host_id = l.host_id
        )
        select host_id, failures, sum(entries) over () as applied from learnt order by failures desc
    loop
        applied := failing.applied;
        exit when failing.failures = 0;
        perform count_failures(failing.host_id, failing.failures, t);
    end loop;
    return coalesce(applied, 0);
end $$;
comment on function recrawl_internal.drain_at(timestamptz, int) is 'Applies at most max_entries of the inbox to the queue; returns how many.';
