-- Repairs times that a wrong clock wrote. Either the clock was ahead and was set back, or a backup was restored on a
-- server whose clock is behind. Then hosts were fetched "in the future" and pages are due too late, and nothing would
-- happen until that time comes. The sign: the latest tick lies in the future. In that case all leases, pages and hosts
-- are checked once, some of them at each tick. Each time that a correct clock cannot have written is pulled in, which
-- means moved back to the present:
--
--    column               cannot be correct if                         becomes
--    host.last_start_by   it is more than longest_ahead() ahead        earlier by the error of the clock
--    host.blocked_until   the host earned the block by strikes, and    earlier by the error of the clock, at most a
--                         it is more than 1.1 days ahead: the longest  day ahead. Operators may block for any time
--                         back-off with its 10 %
--    host.busy_until      it lies in the future                        the end of its lease; null without a lease
--    host.ready_at,       it is later than the times it depends on     computed again
--    host.new_ready_at
--    host.new_class       the host is last in the queue of new pages,  computed again
--                         but no revisit is due any more
--    lease.popped_at      it lies in the future                        now, and the lease ends now: its pages go
--                                                                      back; later reports are only observations
--    page.reported_at,    it lies in the future                        now; the page is due as much earlier as the
--    page.fetched_at                                                   time was ahead
--    page.due_at          it is more than 8 days ahead (7 after a      now. Pages that were never handed out, and due
--                         robots_denied), 100 if attempts failed (90   times that a crawler gave, stay: these may be
--                         and 10 %), or 1.5 intervals of the page:     any time
--                         the longest of them
--
-- This waits for no lock: rows that another transaction has locked are checked in the next round.

-- Clocks are corrected by small steps all the time. The effects of such a step end without a repair.
create or replace function recrawl_internal.small_step() returns interval
language sql immutable parallel safe
begin atomic select interval '1 minute'; end;
comment on function recrawl_internal.small_step() is 'If the clock was ahead by less than this, no repair is needed.';
grant execute on function recrawl_internal.small_step to recrawl_reader;

create or replace function recrawl_internal.clock_was_ahead(t timestamptz) returns boolean
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
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
comment on function recrawl_internal.clock_was_ahead(timestamptz) is
    'Whether the latest tick lies in the future. Also remembers the latest tick, and skips ids that were lost.';

-- Entries of the inbox keep their order. They stay before the entries that are written from now on.
create or replace function recrawl_internal.begin_pulling_in(t timestamptz) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: whole; writes inbox, fetch_log, pulse; locks nothing that anybody holds or waits for
begin
    update inbox i set at = i.at - (select max(at) from inbox) + clock_timestamp()
    from (select ctid as tid from inbox where at > clock_timestamp() + small_step() for update skip locked) f
    where i.ctid = f.tid;
    delete from fetch_log where at > t + small_step();
    delete from pulse where at > t + small_step();
    -- near() moves both counts near the budget at the next call of next_pages.
    perform setval('fetch_count', 0), setval('new_count', 0), setval('horizon_recheck', 1);
end $$;
comment on function recrawl_internal.begin_pulling_in(timestamptz) is
    'The part of the repair that is done at once: the inbox, the logs, and the counts of the budget.';

create or replace function recrawl_internal.pull_in_leases(t timestamptz) returns int
language sql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: whole; writes lease; locks lease (passing over locked ones)
    with
    -- The leases end now, and their pages are due now at the latest.
    pulled_in as (
        update lease l set
            popped_at = t,
            lease_until = t,
            dues = array(select least(u.due, t) from unnest(l.dues) with ordinality as u (due, place) order by u.place)
        from (select ctid as tid from lease where popped_at > t + small_step() for update skip locked) f
        where l.ctid = f.tid
        returning 1
    )
    select count(*)::int from pulled_in
$$;
comment on function recrawl_internal.pull_in_leases(timestamptz) is
    'Ends leases whose pages were handed out in the future. Returns their number.';

create or replace function recrawl_internal.pull_in_pages(
    t timestamptz, after_id bigint, up_to_id bigint, out pulled_in int, out passed_over int
)
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes page, inbox; locks page by id (passing over locked ones)
declare
    suspects bigint[];
begin
    suspects := array(
        select p.page_id
        from page p
        cross join setting s
        where p.page_id > after_id and p.page_id <= up_to_id
          and (greatest(p.reported_at, p.fetched_at) > t + small_step()
               or (p.reported_at is not null or p.attempts > 0) and p.due_is is null
                  and p.due_at > t + greatest(
                      case when p.attempts > 0 then interval '100 days' else interval '8 days' end,
                      1.5 / page_frequency(p.frequency, p.pinned_rate, s.frequency)::float8 * interval '1 day')));
    with
    -- Pages that no other transaction has locked, and how far ahead the clock was when they were written.
    early as materialized (
        select p.page_id, p.host_id, p.state, p.due_at,
               greatest(p.reported_at, p.fetched_at) - t as ahead
        from page p
        where p.page_id = any (suspects)
        order by p.page_id
        for update skip locked
    ),
    -- The due times are one microsecond apart, as fetch_now() sets them.
    wanted as (
        select e.*,
               case when e.due_at > t and not is_never(e.due_at) then
                   case when e.ahead > small_step() then greatest(e.due_at - e.ahead, t) else t end
                       - (row_number() over (order by e.page_id desc) - 1) * interval '1 microsecond'
               else e.due_at end as new_due
        from early e
    ),
    -- Write the new due times. The other times are now at the latest.
    written as (
        update page p set
            due_at = w.new_due,
            reported_at = least(p.reported_at, t),
            fetched_at = least(p.fetched_at, t)
        from wanted w
        where p.page_id = w.page_id
    ),
    -- The queue gets the new due times through the inbox.
    told as (
        insert into inbox (host_id, page_id, old_due, new_due)
        select host_id, page_id, due_at, new_due from wanted where state = 'live' and due_at <> new_due
    )
    select count(*), cardinality(suspects) - count(*) into pulled_in, passed_over from wanted;
end $$;
comment on function recrawl_internal.pull_in_pages(timestamptz, bigint, bigint) is
    'Pulls in the times of some pages. Returns the number of pages, and how many were passed over because they are '
    'locked.';

create or replace function recrawl_internal.pull_in_hosts(
    t timestamptz, wrong_until timestamptz, after_id bigint, up_to_id bigint, out pulled_in int, out passed_over int
)
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes host; locks host by id (passing over locked ones)
declare
    suspects bigint[];
begin
    suspects := array(
        select h.host_id from host h
        where h.host_id > after_id and h.host_id <= up_to_id
          and (greatest(h.last_start_by, h.busy_until, h.blocked_until, nullif(h.ready_at, 'infinity'),
                        nullif(h.new_ready_at, 'infinity')) > t + small_step()
               or h.new_class = last_class() and h.head_due > t));
    with
    -- Hosts that no other transaction has locked.
    held as materialized (
        select h.ctid as tid, h as host from host h
        where h.host_id = any (suspects)
        order by h.host_id
        for update skip locked
    ),
    -- A page that was handed out under the wrong clock may still be fetched. The gap is counted from that fetch.
    right_now as (
        select e.tid, (e.host).*, s.default_gap,
               case when (e.host).last_start_by > t + longest_ahead() + small_step() then
                   least(greatest((e.host).last_start_by - (wrong_until - t), t), t + longest_ahead())
               else (e.host).last_start_by end as started_by,
               case when (e.host).strikes > 0 and (e.host).blocked_until > t + interval '1.1 days' + small_step() then
                   least(greatest((e.host).blocked_until - (wrong_until - t), t), t + interval '1 day')
               else (e.host).blocked_until end as kept_until,
               case when (e.host).busy_until > t + small_step() then
                   (select max(l.lease_until) from lease l where l.lease_id = (e.host).busy_lease)
               else (e.host).busy_until end as out_until
        from held e
        cross join setting s
        offset 0
    ),
    -- When each host is ready then, and its class in the queue of new pages.
    wanted as materialized (
        select r.*,
               when_ready(r.head_due, g.next_slot, r.kept_until, r.out_until, t) as revisit_at,
               when_ready(null, g.next_slot, r.kept_until, r.out_until, t) as new_at,
               class_in_line(r.head_new_rank, r.head_due, r.new_credit, t) as class_now
        from right_now r
        cross join lateral (
            select r.started_by + host_gap(r.gap, r.crawl_delay, r.default_gap) as next_slot offset 0
        ) g
    ),
    -- Write only rows that differ by more than a small step.
    written as (
        update host h set
            last_start_by = w.started_by,
            blocked_until = w.kept_until,
            busy_until = w.out_until,
            ready_at = least(h.ready_at, w.revisit_at),
            new_ready_at = case when w.new_class = w.class_now then least(h.new_ready_at, w.new_at)
                                else w.new_at end,
            new_class = w.class_now
        from wanted w
        where h.ctid = w.tid
          and ((w.last_start_by, w.blocked_until, w.busy_until)
               is distinct from (w.started_by, w.kept_until, w.out_until)
               or w.new_class is distinct from w.class_now
               or w.ready_at > w.revisit_at + small_step()
               or w.new_class is not null and w.new_ready_at > w.new_at + small_step())
        returning h.new_class
    )
    select w.hosts, cardinality(suspects) - (select count(*) from held)
    into pulled_in, passed_over
    from (select count(*) as hosts, bit_or(1::bigint << new_class) as classes from written) w
    where note_classes(w.classes);
end $$;
comment on function recrawl_internal.pull_in_hosts(timestamptz, timestamptz, bigint, bigint) is
    'Pulls in the times of some hosts. Returns the number of hosts, and how many were passed over because they are '
    'locked.';

-- One caller at a time does this. The row of pulling_in says how far the repair is. It is written in the transaction of
-- the step, so a step that is rolled back is done again. The repair ends with the first round that passed over no
-- locked row.
create or replace function recrawl_internal.pull_in(t timestamptz, at_once int) returns int
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes pulling_in; locks pulling_in, lease, page by id, host by id (passing over locked ones)
declare
    work   pulling_in;
    pages  record;
    hosts  record;
    leases int;
begin
    select * into work from pulling_in for update skip locked;
    if not found then
        return 0;
    end if;
    if work.wrong_until is null then
        work.wrong_until := from_micros((select last_value from latest_tick));
        perform begin_pulling_in(t);
    end if;
    leases := pull_in_leases(t);
    pages := pull_in_pages(t, work.page_id, work.page_id + 10 * at_once);
    hosts := pull_in_hosts(t, work.wrong_until, work.host_id, work.host_id + 2 * at_once);
    work.leases := work.leases + leases;
    work.pages := work.pages + pages.pulled_in;
    work.hosts := work.hosts + hosts.pulled_in;
    work.passed_over := work.passed_over + pages.passed_over + hosts.passed_over;
    work.page_id := work.page_id + 10 * at_once;
    work.host_id := work.host_id + 2 * at_once;

    if work.host_id < (select last_value from host_id) or work.page_id < (select last_value from page_id) then
        null;                          -- the next step goes on from here
    elsif work.passed_over > 0 then
        work.host_id := 0;
        work.page_id := 0;
        work.passed_over := 0;
    else
        raise warning 'the clock stood at % and is at %: pulled in % hosts, % leases and % pages',
            work.wrong_until, t, work.hosts, work.leases, work.pages
            using hint = 'Nothing is left to do for the crawl. See to it that the server''s clock is kept right, as by '
                         'NTP; if this crawl was restored from another server, that one''s clock may have been wrong.';
        perform setval('latest_tick', micros(t));
        work := (true, null, 0, 0, 0, 0, 0, 0)::pulling_in;
    end if;
    update pulling_in set
        wrong_until = work.wrong_until, host_id = work.host_id, page_id = work.page_id,
        passed_over = work.passed_over, hosts = work.hosts, leases = work.leases, pages = work.pages;
    return leases + pages.pulled_in + hosts.pulled_in + (work.page_id > 0)::int;
end $$;
comment on function recrawl_internal.pull_in(timestamptz, int) is
    'One step of the repair after the clock was ahead. Returns the number of rows it changed; at least 1 if another '
    'step follows.';
