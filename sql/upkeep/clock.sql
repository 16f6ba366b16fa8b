-- The clock was ahead, or a restore came to a server whose clock is behind: what was written then says that hosts were
-- asked, and pages are due, in what is now the future, and nothing would happen until that has come. That it was so is
-- seen from the latest time at which anybody ticked. Then leases, pages and hosts are gone through once, a part at each
-- tick, and what no clock that is right can have written is pulled in:
--
--     host.last_start_by   nobody looks further ahead than longest_ahead(), however long the gap
--     host.busy_until      its lease is gone, or ends earlier
--     host.blocked_until   of a host that earned the block: a day, and a tenth for the jitter; operators block for good
--     host.ready_at        later than all of its reasons
--     host.new_class       last in line, as it was its revisits' turn; they are not due any more
--     lease.popped_at      the future. It ends: its pages go back, and what is still reported counts as an observation
--     page.reported_at     the future, or fetched_at: the page is due as much earlier as that is too late
--     page.due_at          8 days from now (7 after a robots_denied), 100 where attempts failed (90 and the jitter), or
--                          one and a half intervals of the page's own, whichever is longest. A page that was never
--                          handed out, or of which a crawler said when, is due then, which may be any time
--
-- Nobody is waited for: what somebody holds comes in the next round.

-- Clocks are put right in small steps all the time, and those heal by themselves.
create or replace function recrawl_internal.small_step() returns interval
language sql immutable parallel safe
begin atomic select interval '1 minute'; end;
comment on function recrawl_internal.small_step() is 'A clock that was ahead by less needs no mending.';
grant execute on function recrawl_internal.small_step to recrawl_reader;

create or replace function recrawl_internal.clock_was_ahead(t timestamptz) returns boolean
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited
declare
    latest constant timestamptz := from_micros((select last_value from latest_tick));
begin
    if t > latest then
        perform setval('latest_tick', micros(t));
    end if;
    return latest > t + small_step();
end $$;
comment on function recrawl_internal.clock_was_ahead(timestamptz) is
    'Whether anybody ticked at a time that has not come yet; keeps the latest one in mind.';

-- Entries keep their order, and stand before those that are written from now on.
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
    -- They stand beside what the budget comes to since 1970: near() brings them up.
    perform setval('fetch_count', 0), setval('new_count', 0), setval('horizon_recheck', 1);
end $$;
comment on function recrawl_internal.begin_pulling_in(timestamptz) is
    'What is done at once when the clock was ahead: the inbox, the logs, the pace.';

create or replace function recrawl_internal.pull_in_leases(t timestamptz) returns int
language sql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: whole; writes lease; locks lease (passing over locked ones)
    with
    -- They end now, and what they held is due by now.
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
    'Ends leases that were handed out in the future; returns how many.';

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
    -- Those that nobody holds, and how far ahead the clock was that wrote them.
    early as materialized (
        select p.page_id, p.host_id, p.state, p.due_at,
               greatest(p.reported_at, p.fetched_at) - t as ahead
        from page p
        where p.page_id = any (suspects)
        order by p.page_id
        for update skip locked
    ),
    -- A microsecond apart, as by fetch_now().
    wanted as (
        select e.*,
               case when e.due_at > t and not is_never(e.due_at) then
                   case when e.ahead > small_step() then greatest(e.due_at - e.ahead, t) else t end
                       - (row_number() over (order by e.page_id desc) - 1) * interval '1 microsecond'
               else e.due_at end as new_due
        from early e
    ),
    -- Their rows say so, and that they were seen by now.
    written as (
        update page p set
            due_at = w.new_due,
            reported_at = least(p.reported_at, t),
            fetched_at = least(p.fetched_at, t)
        from wanted w
        where p.page_id = w.page_id
    ),
    -- The queue follows.
    told as (
        insert into inbox (host_id, page_id, old_due, new_due)
        select host_id, page_id, due_at, new_due from wanted where state = 'live' and due_at <> new_due
    )
    select count(*), cardinality(suspects) - count(*) into pulled_in, passed_over from wanted;
end $$;
comment on function recrawl_internal.pull_in_pages(timestamptz, bigint, bigint) is
    'Pulls in what lies in the future of some pages; how many that were, and how many somebody holds.';

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
    -- Those that nobody else holds.
    held as materialized (
        select h.ctid as tid, h as host from host h
        where h.host_id = any (suspects)
        order by h.host_id
        for update skip locked
    ),
    -- A request that was promised under the other clock may still come: the host is free a gap after that.
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
    -- When each is ready by that, and where it stands in line.
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
    -- What differs by more than a small step.
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
    'Pulls in what keeps some hosts until the future; how many that were, and how many somebody holds.';

-- One caller at a time. Its row is written as the work is, so that a step that is rolled back is done again; the clock
-- counts as having been ahead until a round found nothing that somebody held.
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
    'One step of pulling in what lies in the future because the clock was ahead; returns how much it was, or that it '
    'goes on.';
