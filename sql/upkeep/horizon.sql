-- Horizons: where index scans over host.ready_at, inbox.at and lease.lease_until begin.
--
-- Entries that were consumed stay in an index while any snapshot that could see them is open (pg_dump, analytics), and
-- a scan from the beginning reads every one of them. So scans begin at a horizon below which nothing live was seen. It
-- is a hint: a transaction that writes a time and commits more than SLACK later can leave a row below it. A recheck
-- from the very beginning heals that within seconds; it may use a hundredth of the time at most, however long the
-- snapshot is held.
--
-- The values live in sequences (see migrations/versions/0001_schema.sql).

create or replace function recrawl_internal.micros(t timestamptz) returns bigint
language sql immutable parallel safe
as $$
    select greatest(1, least((extract(epoch from t) * 1000000)::numeric, 9e18)::bigint)
$$;
comment on function recrawl_internal.micros(timestamptz) is 'A time as a sequence can hold it.';

create or replace function recrawl_internal.from_micros(micros bigint) returns timestamptz
language sql stable parallel safe
as $$
    select timestamptz 'epoch' + micros * interval '1 microsecond'
$$;
comment on function recrawl_internal.from_micros(bigint) is 'The time that a sequence holds.';

create or replace function recrawl_internal.advance_horizons(t timestamptz) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
declare
    slack   constant interval := '500 milliseconds';
    recheck boolean := from_micros((select last_value from horizon_recheck)) not between t and t + '1 day';
    since   constant timestamptz := clock_timestamp();
    hosts   timestamptz := '-infinity';
    entries timestamptz := '-infinity';
    leases  timestamptz := '-infinity';
begin
    if not recheck then
        hosts := from_micros((select last_value from host_horizon));
        entries := from_micros((select last_value from inbox_horizon));
        leases := from_micros((select last_value from lease_horizon));
    end if;
    -- The inbox is stamped by the wall clock, whatever time a twin was given.
    hosts := least((select ready_at from host where ready_at >= hosts order by ready_at limit 1), t) - slack;
    entries := least((select at from inbox where at >= entries order by at limit 1), since) - slack;
    leases := least((select lease_until from lease where lease_until >= leases order by lease_until limit 1), t)
              - slack;
    perform setval('host_horizon', micros(hosts)),
            setval('inbox_horizon', micros(entries)),
            setval('lease_horizon', micros(leases));
    if recheck then
        perform setval('horizon_recheck',
                       micros(t + greatest(interval '2 seconds', 100 * (clock_timestamp() - since))));
    end if;
end $$;
comment on function recrawl_internal.advance_horizons(timestamptz) is
    'Moves the horizons up to the first live entry, rechecking from the beginning now and then.';
