-- Applies entries of the inbox to the queues of pages: new pages enter, due times change, dead pages leave. It locks
-- the hosts of the entries. The number of entries at a time is limited. Hosts that next_pages has locked are passed
-- over: their entries wait for the next drain. A large inbox is drained for a sixteenth of the hosts at a time. So
-- next_pages finds the other hosts free, also hosts that have entries all the time.

-- An entry says where its page was. Where the page belongs now is read from its row in page:
--
--    old_due or old_rank    the page moves, or leaves if it is dead. If it is not at the old place any more, nothing
--                           happens: it was handed out since, or another entry has moved it or will move it
--    neither                the page enters for the first time
--    revived                the page was dead and is live again. It enters, unless it has a place
--
-- With `failed`, a request of the page failed, and its host may be the reason: see count_failures().
--
-- Entries do not say where the page belongs, because an entry that was committed late, or written while the clock was
-- ahead, is applied after newer entries. Example: a page at 12:00 moves to 13:00, and then to 14:00. The second entry
-- (old_due 13:00) is applied first and finds no page there. The first one (old_due 12:00) then moves it, to 14:00.
--
-- Two steps: move the pages (move_in_queues), and give the hosts their new places (place_hosts).

select make_type('queue_changes', '(host_id bigint, more_pages int, due timestamptz, rank real, id bigint)',
    'The changes in the queues of a host: its number of pages, and the first due time, rank and page that came.');

-- Moves pages to their new places, and takes dead pages out. Returns the changes for each host, in order of id.
create or replace function move_in_queues(entries inbox[]) returns setof queue_changes
language plpgsql volatile as $$
-- plans: inherited; writes new_page, queue; locks nothing: the caller holds the hosts
begin
    return query
    -- «(… in (select …)) is true» stays a hashed subplan. A join of two CTEs would compare every pair of rows.
    with
    revived_page as materialized (select host_id, page_id from unnest(entries) where revived),
    -- Pages that live again and have a place: they are leased, or have never left. This reads all pages of their hosts,
    -- once. The set in memory is the small one: with all pages of a large host in it, PostgreSQL would not hash it.
    has_place as materialized (
        select q.page_id from queue q
        where q.host_id in (select host_id from revived_page)
              and (q.page_id in (select page_id from revived_page)) is true
        union all
        select n.page_id from new_page n
        where n.host_id in (select host_id from revived_page)
              and (n.page_id in (select page_id from revived_page)) is true
    ),
    -- The entries, with the new places of their pages and the rows at the old places (new_tid, queue_tid). enters: the
    -- page gets a new row in queue or new_page. A page that lives again gets one only if it has no place. A new page
    -- that died before it entered stays out. A page in queue that is new again moves to new_page. The old places are
    -- found with one index look-up for each entry. A plain join would be planned in the other direction if the table
    -- was once empty, and would read all of it when it has grown.
    entry as materialized (
        select e.host_id, e.page_id, f.names_no_place, p.page_id is not null as is_live, p.due_at as new_due,
               case when p.due_at is null then -p.value end as new_rank, n.tid as new_tid, q.tid as queue_tid,
               p.page_id is not null
               and case when e.revived then (e.page_id in (select page_id from has_place)) is not true
                        else f.names_no_place or n.tid is not null
                             or (q.tid is not null and p.due_at is null) end as enters
        from unnest(entries) e
        cross join lateral (select e.old_due is null and e.old_rank is null as names_no_place) f
        left join lateral (
            select p.page_id, p.due_at, p.value from page p
            where p.page_id = e.page_id and p.state = 'live'
            offset 0
        ) p on true
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
    -- New pages leave their old places: they get another place, or are dead.
    left_new as (
        delete from new_page n using entry e where n.ctid = e.new_tid
    ),
    -- Dead pages leave the queue. So does a page that is new again: it was never fetched, was excluded, and came back.
    left_queue as (
        delete from queue q using entry e where e.new_due is null and q.ctid = e.queue_tid
    ),
    -- The others move within it.
    moved as (
        update queue q set due_at = e.new_due from entry e where e.new_due is not null and q.ctid = e.queue_tid
    ),
    -- Pages with a due time enter the queue.
    entered_queue as (
        insert into queue (host_id, page_id, due_at)
        select host_id, page_id, new_due from entry where enters and new_due is not null
    ),
    -- New pages enter by rank, which is minus their value.
    entered_new as (
        insert into new_page (host_id, page_id, rank)
        select host_id, page_id, new_rank from entry where enters and new_rank is not null
    )
    -- The changes for each host. The head_… columns of a host are lower bounds: no page of the host comes before them.
    select host_id,
           (count(*) filter (where names_no_place and enters)
            - count(*) filter (where not is_live and num_nonnulls(new_tid, queue_tid) > 0))::int,
           min(new_due), min(new_rank), min(page_id) filter (where new_rank is not null)
    from entry
    group by host_id
    order by host_id;
end $$;

-- Gives hosts the places in both queues of hosts that follow from changes in their queues of pages. A ready host keeps
-- its place among revisits. A host keeps its place among new pages unless its class may get better. If it keeps
-- both, the update is cheap (HOT).
create or replace function place_hosts(t timestamptz, changes queue_changes[], s setting) returns void
language plpgsql volatile as $$
-- plans: inherited; writes host; locks nothing: the caller holds the hosts
declare
    classes bigint;                    -- the classes of new pages of these hosts, one bit each
begin
    with
    -- The hosts after the change.
    woken as (
        update host h set
            pages = h.pages + n.more_pages,
            head_due = least(h.head_due, n.due),
            head_new_rank = least(h.head_new_rank, n.rank),
            head_new_id = least(h.head_new_id, n.id),
            ready_at = case when h.ready_at <= t or n.due is null then h.ready_at
                else greatest(least(h.head_due, n.due), when_free(h, s, t)) end,
            new_ready_at = case when n.rank is null or h.new_class <= value_class(n.rank) then h.new_ready_at
                else when_free(h, s, t) end,
            new_class = case when n.rank is null or h.new_class <= value_class(n.rank) then h.new_class
                else class_in_line(least(h.head_new_rank, n.rank), least(h.head_due, n.due), h.new_credit, t) end
        from unnest(changes) n
        cross join lateral (                   -- newest version first: see plans.sql
            select ctid as tid from host
            where host_id between n.host_id and n.host_id
            order by host_id desc
            limit 1
        ) l
        where h.ctid = l.tid
        returning h.new_class
    )
    select bit_or(1::bigint << new_class) into classes from woken;
    perform note_classes(classes);
end $$;

-- Applies at most max_entries entries of the inbox to the queues. Returns their number.
--
-- Example: max_entries is 1,000, and 50,000 entries wait. The oldest is of the host 35, and 35 % 16 = 3. So this call
-- drains only hosts with host_id % 16 = 3. It reads the oldest 16,000 entries, and about 1,000 of them are of such
-- hosts. If other transactions have locked all these hosts, it reads the oldest 64,000 entries instead, and applies up
-- to 1,000 of them, of any hosts that are not locked.
create or replace function drain_at(t timestamptz, max_entries int) returns int
language plpgsql volatile as $$
-- plans: lookups; writes inbox; locks host by id (passing over locked ones), inbox
declare
    -- The time of the oldest entry. It is looked up once, because the index still contains recently drained entries
    -- below it.
    since   timestamptz;
    slices  int;                       -- 16 if more than 200 entries wait, otherwise 1; one slice is drained
    slice   int;                       -- the one with the oldest entry, so each has its turn
    reach   int;                       -- the number of the oldest entries that are read
    longest constant int := 64 * max_entries;          -- reach, if all hosts of the oldest entries are locked
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
        -- Lock the hosts first, in a separate statement. Then the next statement sees the changes of the transactions
        -- that held these locks before.
        hosts := array(
            select distinct host_id
            from (select host_id from inbox where at >= since order by at limit reach) oldest
            where host_id % slices = slice % slices);   -- with one slice: all hosts
        hosts := array(
            select h.host_id
            from (select unnest(hosts) as id order by id) d
            cross join lateral (               -- newest version first: see plans.sql
                select host_id from host
                where host_id between d.id and d.id
                order by host_id desc
                limit 1
                for update skip locked
            ) h);
        exit when cardinality(hosts) > 0 or reach = longest;
        -- Other transactions have locked all of these hosts, perhaps for a long time. Other hosts must not wait for
        -- that: read more entries, of all hosts.
        slices := 1;
        reach := longest;
    end loop;

    with
    -- The oldest entries of the locked hosts.
    oldest as (
        select *
        from (select ctid as tid, at, page_id, host_id from inbox where at >= since order by at limit reach) o
        where (host_id in (select unnest(hosts))) is true
        order by at
        limit max_entries
    ),
    -- One entry for each page, the oldest. The next entry of the page may begin at the place where this one ends.
    first_of_page as (
        select distinct on (page_id) tid from oldest order by page_id, at
    ),
    taken_out as (delete from inbox i using first_of_page f where i.ctid = f.tid returning i.*)
    select array_agg(o::inbox) into entries from taken_out o;
    if entries is not null then
        perform place_hosts(t, array(select c from move_in_queues(entries) c), s) from setting s;
        for failing in
            select host_id, count(*)::int as failures
            from unnest(entries) where failed group by host_id order by host_id
        loop
            perform count_failures(failing.host_id, failing.failures, t);
        end loop;
    end if;
    return coalesce(cardinality(entries), 0);
end $$;

-- Applies entries of the inbox, at most max_entries, until none is left that can be applied now. Returns their number.
-- The steps are small, because drain_at() reads many more entries than it applies if the inbox is large.
create or replace function drain_up_to(t timestamptz, max_entries int) returns int
language plpgsql volatile as $$
-- plans: inherited
declare
    drained int := 0;
    step    int;
begin
    loop
        step := drain_at(t, least(1000, max_entries - drained));
        drained := drained + step;
        exit when step = 0 or drained = max_entries;
    end loop;
    return drained;
end $$;
