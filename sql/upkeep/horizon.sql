-- Horizons: where index scans over host.ready_at, inbox.at and lease.lease_until begin.
--
-- Entries that were consumed stay in an index while any snapshot that could see them is open (pg_dump, analytics), and
-- a scan from the beginning reads every one of them. So scans begin at a horizon below which nothing live was seen. It
-- is a hint: a transaction that writes a time and commits more than slack() later can leave a row below it. A recheck
-- from the very beginning heals that within seconds; it may use a hundredth of the time, or comes every four minutes,
-- however long the snapshot is held.
--
-- The values live in sequences (see migrations/versions/0001_first/cells.sql).

create or replace function recrawl_internal.slack() returns interval
language sql immutable parallel safe
begin atomic select interval '500 milliseconds'; end;
comment on function recrawl_internal.slack() is
    'How long after its time a row may be committed and still be seen above the horizon.';

create or replace function recrawl_internal.micros(t timestamptz) returns bigint
language sql immutable parallel safe
begin atomic
    select greatest(1, least((extract(epoch from t) * 1000000)::numeric, 9e18)::bigint);
end;
comment on function recrawl_internal.micros(timestamptz) is 'A time as a sequence can hold it.';

create or replace function recrawl_internal.from_micros(micros bigint) returns timestamptz
language sql stable parallel safe
begin atomic
    select timestamptz 'epoch' + micros * interval '1 microsecond';
end;
comment on function recrawl_internal.from_micros(bigint) is 'The time that a sequence holds.';

create or replace function recrawl_internal.new_horizon(class int) returns regclass
language sql stable parallel safe
begin atomic
    select ('recrawl_internal.new_horizon_' || class)::regclass;
end;
comment on function recrawl_internal.new_horizon(int) is
    'The sequence that holds where scans of a class of new pages begin.';

create or replace function recrawl_internal.new_since(class int) returns timestamptz
language sql volatile parallel safe
begin atomic
    select recrawl_internal.from_micros(coalesce(pg_sequence_last_value(recrawl_internal.new_horizon(class)), 1));
end;
comment on function recrawl_internal.new_since(int) is
    'Where scans of a class of new pages begin. Volatile: in a scan''s condition it would be no bound, but a filter.';

create or replace function recrawl_internal.occupied_classes(best_first_from int)
returns table (class int, since timestamptz)
language sql stable
begin atomic
    select c.class, z.since
    from recrawl_internal.new_classes b
    cross join generate_series(best_first_from, best_first_from + recrawl_internal.last_class()) as g (nth)
    cross join lateral (select g.nth % (recrawl_internal.last_class() + 1) as class) c
    cross join lateral (select recrawl_internal.new_since(c.class) as since offset 0) z
    where b.last_value >> c.class & 1 = 1;
end;
comment on function recrawl_internal.occupied_classes(int) is
    'The classes of new pages in which hosts stand, from one of them to the last and round to the best, and where '
    'their scans begin.';

-- Of two that write at once one may be lost; the next tick finds it again.
create or replace function recrawl_internal.note_classes(classes bigint) returns boolean
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited
declare
    known constant bigint := (select last_value from new_classes);
begin
    if known & classes <> classes then
        perform setval('new_classes', known | classes);
    end if;
    return true;
end $$;
comment on function recrawl_internal.note_classes(bigint) is
    'Keeps in mind which classes of new pages hosts have come into, a bit each; null = none. Always true.';

create or replace function recrawl_internal.advance_new_horizons(t timestamptz, recheck boolean) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
begin
    -- A class without hosts keeps its horizon once it was brought up: nothing dies in it either.
    perform setval('new_classes', coalesce(bit_or(1::bigint << f.class) filter (where f.first is not null), 0)),
            count(setval(new_horizon(f.class), micros(least(f.first, t) - slack())))
                filter (where f.first is not null or f.was_occupied)
    from (
        select c.class, b.last_value >> c.class & 1 = 1 as was_occupied,
               (select h.new_ready_at from host h
                where h.new_class = c.class and h.new_ready_at >= z.since
                order by h.new_ready_at limit 1) as first
        from new_classes b
        cross join generate_series(0, last_class()) as c (class)
        cross join lateral (
            select case when recheck then '-infinity' else new_since(c.class) end as since offset 0
        ) z
        offset 0
    ) f;
end $$;
comment on function recrawl_internal.advance_new_horizons(timestamptz, boolean) is
    'The same for the line of new pages, class by class, and which classes are occupied.';

create or replace function recrawl_internal.advance_horizons(t timestamptz) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
declare
    since   constant timestamptz := clock_timestamp();
    -- At once where a horizon lies in the future: the clock was set back, and what is written now lies below it.
    recheck constant boolean := (
        select from_micros(r.last_value) not between t and t + '5 minutes'
               or from_micros(greatest(h.last_value, l.last_value)) > t or from_micros(i.last_value) > since
        from horizon_recheck r, host_horizon h, lease_horizon l, inbox_horizon i);
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
    hosts := least((select ready_at from host where ready_at >= hosts order by ready_at limit 1), t) - slack();
    entries := least((select at from inbox where at >= entries order by at limit 1), since) - slack();
    leases := least((select lease_until from lease where lease_until >= leases order by lease_until limit 1), t)
              - slack();
    perform setval('host_horizon', micros(hosts)),
            setval('inbox_horizon', micros(entries)),
            setval('lease_horizon', micros(leases));
    perform advance_new_horizons(t, recheck);
    if recheck then
        perform setval('horizon_recheck',
                       micros(t + least(greatest(interval '2 seconds', 100 * (clock_timestamp() - since)),
                                        interval '4 minutes')));
    end if;
end $$;
comment on function recrawl_internal.advance_horizons(timestamptz) is
    'Moves the horizons up to the first live entry, rechecking from the beginning now and then.';
