-- Applies what the inbox holds to the queue, under host locks: new pages enter, due times move, dead pages leave.
-- Bounded, and it passes over hosts that a pop holds: their entries wait for the next drain. A backlog is worked off
-- for a sixteenth of the hosts at a time, so that pops find the other hosts free, popular ones too.

-- Entries without an old place bring a page in. Entries with one do nothing when the page is no longer there (it was
-- handed out meanwhile, and whoever holds its lease will say where it goes next). Those without a new place take it
-- out, if it is dead.
--
-- Where a live page goes, its row says, not the entry. What was committed late, or by a clock that was ahead, is seen
-- after what was said since, and that found the page at another place and did nothing.
create or replace function recrawl_internal.apply_inbox(
    t timestamptz, entries recrawl_internal.inbox[], s recrawl_internal.setting
) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited; writes new_page, queue, host; locks nothing: the caller holds the hosts
declare
    classes bigint;                    -- of new pages, that hosts stand in now
begin
    -- «(… in (select …)) is true» stays a hashed subplan; as a join of two CTEs it would compare every pair.
    with
    -- Who leaves for good is decided here, where the host's queue holds still: a page may live again meanwhile.
    entry as materialized (
        select e.host_id, e.page_id, e.old_due, e.old_rank, e.revived,
               case when p.page_id is null then e.new_rank when p.due_at is null then -p.value end as new_rank,
               e.old_due is null and e.old_rank is null as is_first, p.page_id is not null as is_live,
               e.new_due is null and e.new_rank is null and p.page_id is null as leaves,
               case when p.page_id is not null then p.due_at when not e.revived then e.new_due end as new_due
        from unnest(entries) e
        left join lateral (
            select p.page_id, p.due_at, p.value from page p
            where p.page_id = e.page_id and p.state = 'live'
            offset 0
        ) p on true
    ),
    -- Old places, one look-up each: a plain join would be planned the other way round where a table was empty once,
    -- and read all of it for every entry when it has grown.
    place as materialized (
        select e.page_id, e.leaves, e.new_due, n.tid as new_tid, q.tid as queue_tid
        from entry e
        left join lateral (
            select n.ctid as tid from new_page n
            where (n.host_id, n.rank, n.page_id) = (e.host_id, e.old_rank, e.page_id)
            offset 0
        ) n on true
        left join lateral (
            select q.ctid as tid from queue q
            where (q.host_id, q.due_at, q.page_id) = (e.host_id, e.old_due, e.page_id)
            offset 0
        ) q on true
    ),
    -- New pages leave their places, for another or for good.
    left_new as (
        delete from new_page n using place p where n.ctid = p.new_tid returning n.page_id
    ),
    -- Dead pages leave the queue.
    left_queue as (
        delete from queue q using place p where p.leaves and q.ctid = p.queue_tid returning q.page_id
    ),
    -- The others move within it.
    moved as (
        update queue q set due_at = p.new_due from place p where p.new_due is not null and q.ctid = p.queue_tid
    ),
    -- Where pages live again.
    revived_host as (
        select host_id from entry where revived
    ),
    -- What gets a place. A page that lives again only where it has none any more: it may be out, or never have
    -- left. One that died before it came in stays out.
    entering as materialized (
        select * from entry e
        where not leaves
          and case when revived then
                  new_due is not null
                  and (e.page_id in (select q.page_id from queue q
                                     where q.host_id in (select host_id from revived_host))) is not true
                  and (e.page_id in (select n.page_id from new_page n
                                     where n.host_id in (select host_id from revived_host))) is not true
              else is_first and is_live or (page_id in (select page_id from left_new)) is true
          end
    ),
    -- Known pages, by when they are due.
    entered_queue as (
        insert into queue (host_id, page_id, due_at)
        select host_id, page_id, new_due from entering where new_due is not null
    ),
    -- New ones, by what they are worth.
    entered_new as (
        insert into new_page (host_id, page_id, rank)
        select host_id, page_id, new_rank from entering where new_rank is not null
    ),
    -- What each host must know of it. Heads may be no page's own, but lie below every page's.
    learnt as (
        select e.host_id,
               count(*) filter (where e.is_first and (e.page_id in (select page_id from entering)) is true)
                   - count(*) filter (where e.leaves and (e.page_id in (
                         select page_id from left_new union all select page_id from left_queue)) is true)
                   as more_pages,
               min(e.new_due) as due,
               min(e.new_rank) as rank,
               min(e.page_id) filter (where e.new_rank is not null) as id
        from entry e group by e.host_id
    ),
    -- Each host stands where what it has now has its turn.
    woken as (
        update host h set
            pages = h.pages + l.more_pages,
            head_due = least(h.head_due, l.due),
            head_new_rank = least(h.head_new_rank, l.rank),
            head_new_id = least(h.head_new_id, l.id),
            -- A host that is ready, or whose best class stays, keeps its place: that is a cheap update (HOT).
            ready_at = case when h.ready_at <= t or l.due is null then h.ready_at
                else when_ready(least(h.head_due, l.due), next_slot(h, s), h.blocked_until, h.busy_until, t) end,
            new_ready_at = case when l.rank is null or h.new_class <= value_class(l.rank) then h.new_ready_at
                else when_ready(null, next_slot(h, s), h.blocked_until, h.busy_until, t) end,
            new_class = case when l.rank is null or h.new_class <= value_class(l.rank) then h.new_class
                else class_in_line(least(h.head_new_rank, l.rank), least(h.head_due, l.due), h.new_credit, t) end
        from learnt l where h.host_id = l.host_id
        returning h.new_class
    )
    select bit_or(1::bigint << new_class) into classes from woken;
    perform note_classes(classes);
end $$;
comment on function recrawl_internal.apply_inbox(timestamptz, recrawl_internal.inbox[], recrawl_internal.setting) is
    'Applies entries of the inbox, at most one of each page, to the queues of their hosts, which are locked.';

create or replace function recrawl_internal.drain_at(t timestamptz, max_entries int) returns int
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes inbox; locks host by id (passing over locked ones), inbox
declare
    -- Where the entries begin: found once, for what was drained lately is still in the index before it.
    since   timestamptz;
    slices  int;                       -- how many slices the hosts are in; the oldest entry says whose turn it is
    slice   int;
    reach   int;                       -- how many of the oldest entries are looked at
    hosts   bigint[];
    entries inbox[];
    failing record;
begin
    select at, host_id % 16 into since, slice
    from inbox where at >= from_micros((select last_value from inbox_horizon)) order by at limit 1;
    if since is null then
        return 0;
    end if;
    slices := case when exists (
        select from inbox where at >= since order by at offset least(max_entries, 200) limit 1) then 16 else 1 end;
    reach := max_entries * slices;
    loop
        -- Hosts first, in a statement of their own: the next one sees what their last holders did.
        hosts := array(
            select distinct host_id
            from (select host_id from inbox where at >= since order by at limit reach) oldest
            where host_id % slices = slice % slices);
        hosts := array(
            select h.host_id from host h where h.host_id = any (hosts) order by h.host_id for update skip locked);
        exit when cardinality(hosts) > 0 or reach = max_entries * 64;
        -- Somebody holds these hosts, for how long nobody knows: the others must not wait.
        slices := 1;
        reach := max_entries * 64;
    end loop;

    with
    -- Of the oldest entries, those of the hosts at hand.
    oldest as (
        select *
        from (select ctid as tid, at, page_id, host_id from inbox where at >= since order by at limit reach) o
        where (host_id in (select unnest(hosts))) is true
        order by at
        limit max_entries
    ),
    -- Of a page one at a time: the next may start where this one ends.
    first_of_page as (
        select distinct on (page_id) tid from oldest order by page_id, at
    ),
    -- They leave the inbox.
    taken_out as (
        delete from inbox i using first_of_page f where i.ctid = f.tid returning i.*
    )
    select array_agg(o::inbox) into entries from taken_out o;
    if entries is not null then
        perform apply_inbox(t, entries, (select s from setting s));
        for failing in
            select host_id, count(*)::int as failures
            from unnest(entries) where failed group by host_id order by host_id
        loop
            perform count_failures(failing.host_id, failing.failures, t);
        end loop;
    end if;
    return coalesce(cardinality(entries), 0);
end $$;
comment on function recrawl_internal.drain_at(timestamptz, int) is
    'Applies at most max_entries of the inbox to the queue; returns how many.';
