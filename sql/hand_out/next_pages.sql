-- The queue's one pop. Hosts stand in two lines, for due revisits and for new pages (words/lines.sql). Those whose turn
-- it is are locked first, skipping those that others hold (hosts_to_visit.sql); then each gives its next pages of that
-- kind a slot (slots.sql), and they are handed out (hand_out.sql).
--
-- Lock order: host (never waits), queue. Pages are only read.

create or replace function recrawl_internal.check_pop(
    n int, ahead interval, lease interval, per_host int, notice interval, max_ahead interval
) returns void
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
begin
    if n is null or n <= 0 then
        perform refuse(format('next_pages: n must be positive, got %s', coalesce(n::text, 'null')));
    elsif ahead is null or in_seconds(ahead) not between interval '0' and max_ahead then
        perform refuse(format('next_pages: ahead must lie between 0 and the setting max_ahead (%s), got %s',
                              max_ahead, coalesce(ahead::text, 'null')));
    elsif lease is null or in_seconds(lease) not between interval '1 second' and interval '7 days' then
        perform refuse(format('next_pages: lease must lie between 1 second and 7 days, got %s',
                              coalesce(lease::text, 'null')));
    elsif per_host <= 0 then
        perform refuse(format('next_pages: per_host must be positive, got %s', per_host));
    elsif notice is null or in_seconds(notice) not between interval '0' and max_ahead - in_seconds(ahead) then
        perform refuse(format('next_pages: notice must lie between 0 and what ahead leaves of the setting max_ahead '
                              '(%s), got %s', max_ahead, coalesce(notice::text, 'null')));
    end if;
end $$;
comment on function recrawl_internal.check_pop(int, interval, interval, int, interval, interval) is
    'Raises where next_pages cannot be what was meant.';

create or replace function recrawl_internal.next_pages_at(
    t timestamptz, n int, ahead interval, lease interval, per_host int, notice interval default '0',
    host text default null
) returns setof recrawl.page_to_fetch
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; locks host (passing over locked ones)
#variable_conflict use_column
declare
    s           setting;
    host_from   timestamptz;           -- horizons
    lease_from  timestamptz;
    inbox_from  timestamptz;
    tick_due    boolean;
    draw        numeric;               -- spread evenly from 0 to 1 over calls
    other_draw  numeric;
    new_first   boolean;               -- which line is asked first
    first_class int;                   -- of new pages, that is asked first
    per_visit   numeric;               -- pages that a host is expected to give
    split       numeric;               -- the draw, in the first round
    visited     bigint[] := '{}';      -- hosts
    again       bigint[];              -- the last rounds are among these
    visit       visits;
    visits      int;
    wanted      int := n;
    wanted_new  int;                   -- of them new pages
    got         int;
    got_new     int;
    most_new    int;                   -- new pages that the budget has room for
    to_drain    int := 10200;          -- entries of the inbox, of however many there are: .2 s
    idle        boolean := false;      -- the last round found nothing, and there was nothing to drain, or no more is
    -- Upkeep updates pages. Whoever does that must hold no host: a report may hold the pages and wait for the host.
    holds_none  constant boolean := pg_current_xact_id_if_assigned() is null;
    this_lease  bigint;
    alone       constant bigint := case when host is not null then coalesce(host_id_of('next_pages', host), 0) end;
    stuck       bigint[] := '{}';      -- hosts of pages whose expired lease cannot be taken back now
begin
    perform check_isolation('next_pages');
    select * into s from setting;
    perform check_pop(n, ahead, lease, per_host, notice, s.max_ahead),
            case when not s.paused then nextval('ask_count') end;
    -- A million times 30 days is still a time. From here on ahead begins with the notice.
    select in_seconds(ahead) + in_seconds(notice), in_seconds(lease), least(per_host, 1000000), in_seconds(notice)
    into ahead, lease, per_host, notice;
    if s.paused then
        return;
    end if;
    select from_micros(h.last_value), from_micros(l.last_value), from_micros(i.last_value),
           tick_is_due(k.last_value, t), d.last_value * 0.6180339887498949 % 1, d.last_value * 0.7548776662466927 % 1
    into host_from, lease_from, inbox_from, tick_due, draw, other_draw
    from host_horizon h, lease_horizon l, inbox_horizon i, next_tick k, lease_id d;
    perform tick_at(t, 10, 200) where tick_due and holds_none;
    perform clock_was_ahead(t) where tick_due and not holds_none;      -- keeps the time in mind

    -- After an outage, the due times that hold the pages of expired leases may have come. They go back first.
    if exists (select from lease where lease_until between lease_from and t + ahead - longest_ahead()) then
        stuck := taken_back(t, t + ahead - longest_ahead(), holds_none);
        if stuck is null then
            return;
        end if;
    end if;

    per_visit := case when ahead = interval '0' then 1
                      else least(coalesce(per_host, wanted), wanted,
                                 1 + floor(date_part('epoch', ahead) / date_part('epoch', s.default_gap))) end;
    -- New pages have their share over all calls, however few pages one wants.
    wanted_new := floor(n * s.discovery::numeric + draw);
    new_first := draw >= 1 - s.discovery::numeric;
    first_class := case when other_draw < s.breadth::numeric then floor(33 * other_draw / s.breadth::numeric)
                        else 0 end;
    split := draw;
    most_new := case when s.budget is null then 2147483647 else new_pages_left(t, ahead, s) end;
    for nth in 1 .. 100 loop
        visit := hosts_to_visit(
            t, wanted, wanted_new, most_new, new_first, first_class, per_visit, t + ahead, per_host, host_from, stuck,
            again, alone, s);
        visits := cardinality(visit.due_hosts) + cardinality(visit.new_hosts);
        if visits = 0 then
            exit when again is not null;
            if not idle and exists (select from lease where lease_until between lease_from and t
                                    union all
                                    select from inbox where at >= inbox_from) then
                perform reap_at(t, 100) where holds_none and this_lease is null;
                select d in (0, to_drain), to_drain - d into idle, to_drain
                from drain_at(t, least(to_drain, 10 * least(n, 1000) + 200)) d;
            else
                -- No more hosts: those of this call may give more.
                exit when ahead = interval '0' or this_lease is null;
                again := visited;
                per_visit := wanted;
            end if;
            continue;
        end if;
        if ahead > interval '0' then
            visited := visited || array(
                select h.host_id from host h where h.ctid = any (visit.due_hosts || visit.new_hosts));
        end if;
        this_lease := coalesce(this_lease, nextval('lease_id'));
        return query
        select * from hand_out(
            t, visit, split, t + ahead, per_host, t + ahead + lease, this_lease, nth, notice, s);
        split := null;
        get diagnostics got = row_count;
        wanted := wanted - got;
        perform nextval('handed_out_count') from generate_series(1, got);
        exit when wanted <= 0 and s.budget is null;
        got_new := coalesce((select l.new_pages from lease l where l.lease_id = this_lease and l.round = nth), 0);
        perform count_fetches(got, got_new) where s.budget is not null;
        exit when wanted <= 0;
        wanted_new := least(wanted, greatest(0, wanted_new - got_new));
        most_new := most_new - got_new;
        -- Hosts that gave less than expected have no more for now: visit as many more as it takes.
        per_visit := greatest(1, got::numeric / visits);
    end loop;
    perform nextval('short_ask_count') where s.budget_is_measured and wanted > 0;
end $$;
comment on function recrawl_internal.next_pages_at(timestamptz, int, interval, interval, int, interval, text) is
    'next_pages at a given time.';

create or replace function recrawl.next_pages(
    n int default 100, ahead interval default '0', lease interval default '10 minutes', per_host int default null,
    notice interval default '0', host text default null
) returns setof recrawl.page_to_fetch
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query select * from next_pages_at(clock_timestamp(), n, ahead, lease, per_host, notice, host);
end $$;
comment on function recrawl.next_pages(int, interval, interval, int, interval, text) is
    'Hands out at most n pages to fetch, leased for a time. With ahead = 0 each may be requested at once, one per '
    'host; with ahead > 0 several of a host (at most per_host), at least its gap apart, as fetch_at says. No fetch_at '
    'is sooner than notice from now: over a slow link, the time that the answer takes. Of one host alone, where it is '
    'named. Commit before fetching. No row: nothing may be fetched now, see next_ready_at().';
grant execute on function recrawl.next_pages to recrawl_crawler;
