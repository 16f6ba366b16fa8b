-- Repairs times that a wrong clock wrote. Either the clock was ahead and was set back, or a backup was restored on a
-- server whose clock is behind. Then hosts were fetched "in the future" and pages are due too late, and nothing would
-- happen until that time comes. The sign: the latest tick lies in the future. Then all leases are checked at each tick,
-- and some of the pages and hosts, until a round over all pages and hosts found no row locked. A time that a correct
-- clock cannot have written is pulled in: it moves back, to the present or towards it, as the table says:
--
--    column               is checked if                                becomes
--    host.last_start_by   it is more than longest_ahead() ahead        earlier by the error of the clock
--    host.blocked_until   the host earned the block by strikes, and    earlier by the error of the clock, at most a
--                         it is more than 1.1 days ahead: the longest  day ahead. Operators may block for any time
--                         back-off with its 10 %
--    host.busy_until      it lies in the future. Correct times do too  the end of its lease: a correct time does not
--                                                                      change. Without a lease it becomes null
--    host.ready_at,       it is later than the times it depends on     computed again
--    host.new_ready_at
--    host.new_class       the host is last in the queue of new pages,  computed again
--                         but no revisit is due any more
--    lease.handed_out_at  it lies in the future                        now, and the lease ends now: its pages go
--                                                                      back. A later report gets the code stale_lease
--    page.reported_at,    it lies in the future                        now; the page is due as much earlier as the
--    page.fetched_at                                                   time was ahead
--    page.due_at          it is further ahead than the longest of      now. A page without a report or a failed
--                         8 days (robots_denied gives 7), 1.5          attempt stays, and a due time that a crawler
--                         intervals of the page, and 100 days if       gave: both may be any time
--                         attempts failed (the back-off ends at 90
--                         days, and adds at most 10 %), and
--                         shortest_interval plus a day
--
-- This waits for no lock: rows that another transaction has locked are checked in the next round.

-- Times are repaired only if the clock was ahead by more than this. Clocks are corrected by small steps all the time.
-- The effects of such a step end without a repair.
create or replace function small_step() returns interval
language sql immutable parallel safe
return interval '1 minute';

-- Remembers the time of the latest tick. Returns whether it lies in the future, so the clock was ahead. After a crash
-- or a failover it skips ids, so that none is given twice (skip_lost_ids).
create or replace function remember_tick(t timestamptz) returns boolean
language plpgsql volatile as $$
-- plans: inherited
declare
    latest constant timestamptz := from_micros((select last_value from latest_tick));
begin
    perform skip_lost_ids();
    if t > latest then
        perform setval('latest_tick', micros(t));
    end if;
    return latest > t + small_step();
end $$;

-- The part of the repair that is done at once: the inbox, pulse, and the counts of the budget. Entries of the inbox
-- stay before the entries that are written from now on. Among themselves they may change their order: drain_at() does
-- not depend on it.
create or replace function begin_pulling_in(t timestamptz) returns void
language plpgsql volatile as $$
-- plans: whole; writes inbox, pulse; locks nothing that anybody holds or waits for
begin
    update inbox i set at = i.at - (select max(at) from inbox) + clock_timestamp()
    from (select ctid as tid from inbox where at > clock_timestamp() + small_step() for update skip locked) f
    where i.ctid = f.tid;
    delete from pulse where at > t + small_step();
    -- near_budget() moves both counts near the budget at the next call of next_pages.
    perform setval('fetch_count', 0), setval('new_count', 0), setval('horizon_recheck', 1);
end $$;

-- Ends leases whose pages were handed out in the future. Returns their number, and how many were passed over because
-- they are locked.
create or replace function pull_in_leases(t timestamptz, out pulled_in int, out passed_over int)
language plpgsql volatile as $$
-- plans: whole; writes lease; locks lease (passing over locked ones)
begin
    update lease l set
        handed_out_at = t,
        lease_until = t,
        dues = array(select least(u.due, t) from unnest(l.dues) with ordinality as u (due, place) order by u.place)
    from (select ctid as tid from lease where handed_out_at > t + small_step() for update skip locked) f
    where l.ctid = f.tid;
    get diagnostics pulled_in = row_count;
    passed_over := (select count(*) from lease where handed_out_at > t + small_step());
end $$;

-- Whether a page has a time that a correct clock cannot have written.
create or replace function is_of_wrong_clock(p page, s setting, t timestamptz) returns boolean
language sql stable
return greatest(p.reported_at, p.fetched_at) > t + small_step()
       or ((p.reported_at is not null or p.attempts > 0) and p.due_is is null
           and p.due_at > t + greatest(
               case when p.attempts > 0 then interval '100 days' else interval '8 days' end,
               s.shortest_interval + interval '1 day',
               1.5 / page_frequency(p.frequency, p.pinned_rate, s.frequency)::float8 * interval '1 day'));

-- Pulls in the times of some pages. Returns the number of pages, and how many were passed over because they are locked.
create or replace function pull_in_pages(
    t timestamptz, after_id bigint, up_to_id bigint, out pulled_in int, out passed_over int
)
language plpgsql volatile as $$
-- plans: lookups; writes page; locks page by id (passing over locked ones)
declare
    suspects bigint[];
    locked   bigint[];                 -- the suspects that no other transaction had locked
    moves    due_move[];
begin
    suspects := array(
        select p.page_id
        from page p
        cross join setting s
        where p.page_id > after_id and p.page_id <= up_to_id and is_of_wrong_clock(p, s, t));
    -- The due times are one microsecond apart, as fetch_now() sets them.
    select array_agg(e.page_id order by e.page_id),
           array_agg(move_of(e.p, e.new_due - e.nth * interval '1 microsecond', (e.p).due_is, (e.p).planned_due,
                             (e.p).frequency) order by e.page_id)
               filter (where (e.p).state = 'live' and (e.p).due_at > t and not is_never((e.p).due_at))
    into locked, moves
    from (select p.page_id, p.p, row_number() over (order by p.page_id desc) - 1 as nth,
                 case when greatest((p.p).reported_at, (p.p).fetched_at) > t + small_step()
                      then greatest((p.p).due_at - (greatest((p.p).reported_at, (p.p).fetched_at) - t), t)
                      else t end as new_due
          from (select p.page_id, p
                from page p cross join setting s
                where p.page_id = any (suspects) and is_of_wrong_clock(p, s, t)  -- a report may have come since
                order by p.page_id for update of p skip locked) p) e;
    update page p set reported_at = least(p.reported_at, t), fetched_at = least(p.fetched_at, t)
    where p.page_id = any (locked);
    perform move_pages(moves);
    pulled_in := coalesce(cardinality(locked), 0);
    passed_over := cardinality(suspects) - pulled_in;
end $$;

-- A host with its times pulled in, and its places in both queues of hosts that follow from them.
create or replace function corrected_host(h host, s setting, t timestamptz, wrong_until timestamptz) returns host
language plpgsql stable as $$
-- plans: lookups
declare
    ahead     constant interval := wrong_until - t;
    new_class constant smallint := class_in_line(h.head_new_rank, h.head_due, h.new_credit, t);
    new_at    timestamptz;
begin
    -- A page that was handed out under the wrong clock may be requested at this moment. So last_start_by does not
    -- become earlier than now.
    if h.last_start_by > t + longest_ahead() + small_step() then
        h.last_start_by := least(greatest(h.last_start_by - ahead, t), t + longest_ahead());
    end if;
    if h.strikes > 0 and h.blocked_until > t + interval '1.1 days' + small_step() then
        h.blocked_until := least(greatest(h.blocked_until - ahead, t), t + interval '1 day');
    end if;
    if h.busy_until > t + small_step() then
        h.busy_until := (select max(l.lease_until) from lease l where l.lease_id = h.busy_lease);
    end if;
    h.ready_at := least(h.ready_at, greatest(h.head_due, when_free(h, s, t)));
    new_at := when_free(h, s, t);
    h.new_ready_at := case when new_class is null then h.new_ready_at        -- the host has no new pages
                           when h.new_class = new_class then least(h.new_ready_at, new_at)
                           else new_at end;
    h.new_class := new_class;
    return h;
end $$;

-- Pulls in the times of some hosts. Returns the number of hosts, and how many were passed over because they are locked.
create or replace function pull_in_hosts(
    t timestamptz, wrong_until timestamptz, after_id bigint, up_to_id bigint, out pulled_in int, out passed_over int
)
language plpgsql volatile as $$
-- plans: lookups; writes host; locks host by id (passing over locked ones)
declare
    suspects bigint[];
    locked   bigint[];                 -- the suspects that no other transaction had locked
    classes  bigint;                   -- one bit for each class of new pages that a host is in now
begin
    suspects := array(
        select h.host_id from host h
        where h.host_id > after_id and h.host_id <= up_to_id
          and (greatest(h.last_start_by, h.busy_until, h.blocked_until, nullif(h.ready_at, 'infinity'),
                        nullif(h.new_ready_at, 'infinity')) > t + small_step()
               or h.new_class = last_class() and h.head_due > t));
    locked := array(
        select h.host_id from host h where h.host_id = any (suspects) order by h.host_id for update skip locked);
    passed_over := cardinality(suspects) - cardinality(locked);
    -- A new statement has a new snapshot: a host may have changed before it was locked.
    with
    -- Only hosts that change are written.
    written as (
        update host h set
            last_start_by = (c.host).last_start_by, blocked_until = (c.host).blocked_until,
            busy_until = (c.host).busy_until, ready_at = (c.host).ready_at,
            new_ready_at = (c.host).new_ready_at, new_class = (c.host).new_class
        from (select l.host_id, corrected_host(l, s, t, wrong_until) as host
              from host l cross join setting s where l.host_id = any (locked) offset 0) c
        where h.host_id = c.host_id and h is distinct from c.host
        returning h.new_class
    )
    select count(*), bit_or(1::bigint << new_class) into pulled_in, classes from written;
    perform note_classes(classes);
end $$;

-- One step of the repair after the clock was ahead. Returns the number of rows it changed, plus 1 if the round is not
-- complete. One caller at a time does this. The row of pulling_in says how far the repair is. It is written in the
-- transaction of the step, so a step that is rolled back is done again. The repair ends with the first round that
-- passed over no locked row, or when the wrong time has come.
create or replace function pull_in(t timestamptz, at_once int) returns int
language plpgsql volatile as $$
-- plans: lookups; writes pulling_in; locks pulling_in, lease, page by id, host by id (passing over locked ones)
declare
    latest  constant timestamptz := from_micros((select last_value from latest_tick));
    work    pulling_in;
    pages   record;
    hosts   record;
    leases  record;
    goes_on boolean;                   -- this round is not complete
begin
    select * into work from pulling_in for update skip locked;
    if not found then
        return 0;
    end if;
    if work.wrong_until is distinct from latest then           -- a new repair; the last one may be unfinished
        update pulling_in set
            wrong_until = latest, page_id = 0, host_id = 0, passed_over = 0, hosts = 0, leases = 0, pages = 0
        returning * into work;
        perform begin_pulling_in(t);
    end if;
    leases := pull_in_leases(t);
    pages := pull_in_pages(t, work.page_id, work.page_id + 10 * at_once);
    hosts := pull_in_hosts(t, work.wrong_until, work.host_id, work.host_id + 2 * at_once);
    update pulling_in p set
        page_id = work.page_id + 10 * at_once,
        host_id = work.host_id + 2 * at_once,
        leases = p.leases + leases.pulled_in,
        pages = p.pages + pages.pulled_in,
        hosts = p.hosts + hosts.pulled_in,
        passed_over = p.passed_over + leases.passed_over + pages.passed_over + hosts.passed_over
    returning p.* into work;
    goes_on := work.host_id < (select last_value from host_id) or work.page_id < (select last_value from page_id);
    if not goes_on then
        update pulling_in set page_id = 0, host_id = 0, passed_over = 0;
        if work.passed_over = 0 then
            raise warning 'the clock stood at % and is at %: pulled in % hosts, % leases and % pages',
                work.wrong_until, t, work.hosts, work.leases, work.pages
                using hint = 'Nothing is left to do for the crawl. See to it that the server''s clock is kept right, '
                             'as by NTP; if this crawl was restored from another server, that one''s clock may have '
                             'been wrong.';
            perform setval('latest_tick', micros(t));
            update pulling_in set wrong_until = null, hosts = 0, leases = 0, pages = 0;
        end if;
    end if;
    return leases.pulled_in + pages.pulled_in + hosts.pulled_in + goes_on::int;
end $$;
