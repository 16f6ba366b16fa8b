-- The queue's one pop. Hosts that are ready are locked first, skipping those that others hold; then each host gives its
-- next pages a slot (slots.sql), and they are handed out (hand_out.sql).
--
-- Lock order: host (never waits), queue. Pages are only read.

create or replace function recrawl_internal.check_pop(
    n int, ahead interval, lease interval, per_host int, max_ahead interval
) returns void
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
begin
    if n is null or n <= 0 then
        perform refuse(format('next_pages: n must be positive, got %s', coalesce(n::text, 'null')));
    elsif ahead is null or ahead not between interval '0' and max_ahead then
        perform refuse(format('next_pages: ahead must lie between 0 and the setting max_ahead (%s), got %s',
                              max_ahead, coalesce(ahead::text, 'null')));
    elsif lease is null or lease not between interval '1 second' and interval '7 days' then
        perform refuse(format('next_pages: lease must lie between 1 second and 7 days, got %s',
                              coalesce(lease::text, 'null')));
    elsif per_host <= 0 then
        perform refuse(format('next_pages: per_host must be positive, got %s', per_host));
    end if;
end $$;
comment on function recrawl_internal.check_pop(int, interval, interval, int, interval) is
    'Raises where next_pages cannot be what was meant.';

create or replace function recrawl_internal.next_pages_at(
    t timestamptz, n int, ahead interval, lease interval, per_host int
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
    hosts       tid[];
    per_visit   numeric;               -- pages that a host is expected to give
    most        int;                   -- pages that a host may give in this round
    wanted      int := n;
    got         int;
    idle        boolean := false;      -- the last round found nothing, and there was nothing to drain
    -- Upkeep updates pages. Whoever does that must hold no host: a report may hold the pages and wait for the host.
    holds_none  constant boolean := pg_current_xact_id_if_assigned() is null;
    this_lease  bigint;
    stuck       bigint[] := '{}';      -- hosts of pages whose expired lease cannot be taken back now
begin
    perform check_isolation('next_pages');
    select * into s from setting;
    perform check_pop(n, ahead, lease, per_host, s.max_ahead);
    if s.paused then
        return;
    end if;
    select from_micros(h.last_value), from_micros(l.last_value), from_micros(i.last_value), tick_is_due(k.last_value, t)
    into host_from, lease_from, inbox_from, tick_due
    from host_horizon h, lease_horizon l, inbox_horizon i, next_tick k;
    if holds_none and tick_due then
        perform tick_at(t, 10, 200);
    end if;

    -- After an outage, the due times that hold the pages of expired leases may have come. They go back before anything
    -- is handed out: a few at a time, while callers get nothing. Where somebody's open transaction locks a lease, the
    -- hosts of its pages wait.
    if exists (select from lease where lease_until between lease_from and t + ahead - longest_ahead()) then
        perform reap_at(t, 100) where holds_none;
        perform from lease
        where lease_until between lease_from and t + ahead - longest_ahead()
        limit 1
        for update skip locked;
        if found then
            return;
        end if;
        stuck := waiting_hosts(t + ahead - longest_ahead());
    end if;

    per_visit := case when ahead = interval '0' then 1
                      else least(coalesce(per_host, wanted), wanted,
                                 1 + floor(date_part('epoch', ahead) / date_part('epoch', s.default_gap))) end;
    for round in 1 .. 30 loop
        hosts := array(
            select h.ctid from host h
            where h.ready_at between host_from and t and h.host_id <> all (stuck)
            order by h.ready_at
            limit ceil(wanted / per_visit)
            for update skip locked);
        if cardinality(hosts) = 0 then
            exit when idle
                   or not exists (select from lease where lease_until between lease_from and t
                                  union all
                                  select from inbox where at >= inbox_from);
            perform reap_at(t, 100) where holds_none and this_lease is null;
            idle := drain_at(t, 10 * least(n, 1000) + 200) = 0;
            continue;
        end if;
        most := case when ahead = interval '0' then 1
                     else least(coalesce(per_host, wanted), ceil(wanted::numeric / cardinality(hosts))) end;
        this_lease := coalesce(this_lease, nextval('lease_id'));
        return query
        select * from hand_out(t, hosts, most, wanted, t + ahead, t + ahead + lease, this_lease, round, s);
        get diagnostics got = row_count;
        wanted := wanted - got;
        exit when wanted <= 0;
        -- Hosts that gave less than expected have no more for now: visit as many more as it takes.
        per_visit := greatest(1, got::numeric / cardinality(hosts));
    end loop;
end $$;
comment on function recrawl_internal.next_pages_at(timestamptz, int, interval, interval, int) is
    'next_pages at a given time.';

create or replace function recrawl.next_pages(
    n int default 100, ahead interval default '0', lease interval default '10 minutes', per_host int default null
) returns setof recrawl.page_to_fetch
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query select * from next_pages_at(clock_timestamp(), n, ahead, lease, per_host);
end $$;
comment on function recrawl.next_pages(int, interval, interval, int) is
    'Hands out at most n pages to fetch, leased for a time. With ahead = 0 each may be requested at once, one per '
    'host; with ahead > 0 several of a host (at most per_host), at least its gap apart, as fetch_at says. Commit '
    'before fetching. No row: nothing may be fetched now, see next_ready_at().';
grant execute on function recrawl.next_pages to recrawl_crawler;
