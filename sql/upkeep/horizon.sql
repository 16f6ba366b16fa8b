-- A **horizon** is the time at which scans of an index begin: the indexes on host.ready_at, host.new_ready_at, inbox.at
-- and lease.lease_until.
--
-- Dead entries stay in an index while a snapshot that could see them is open (pg_dump, analytics). A scan from the
-- beginning would read all of them. So scans begin at a horizon; no live entry was seen below it. Example: all hosts
-- are ready at 12:00 or later, so scans begin shortly before 12:00 and skip the dead entries of the morning.
--
-- A horizon is a hint. A transaction that writes a time and commits more than slack() later can leave a row below the
-- horizon. A recheck, which scans from the very beginning, finds such rows, usually within seconds. The rechecks use at
-- most a hundredth of the time, but come at least every four minutes, even if a snapshot stays open for long.
--
-- The values are stored in sequences (see migrations/versions/0001_first/cells.sql).

-- A row is not below a horizon if its transaction commits at most this long after the time that it wrote into the row.
create or replace function slack() returns interval
language sql immutable parallel safe
return interval '500 milliseconds';

-- The sequence with the horizon of a class of new pages.
create or replace function new_horizon(class int) returns regclass
language sql stable parallel safe
return ('recrawl_internal.new_horizon_' || class)::regclass;

-- The horizon of a class of new pages. Do not use it in the condition of an index scan: because the function is
-- volatile, it would be a filter there and not a bound.
create or replace function new_since(class int) returns timestamptz
language sql volatile parallel safe
return from_micros(coalesce(pg_sequence_last_value(new_horizon(class)), 1));

-- The classes of new pages that hosts are in, and their horizons. They begin at the given class, go to the last class,
-- and continue from class 0.
create or replace function occupied_classes(best_first_from int) returns table (class int, since timestamptz)
language sql stable
begin atomic
    select c.class, z.since
    from new_classes b
    cross join generate_series(best_first_from, best_first_from + last_class()) as g (nth)
    cross join lateral (select g.nth % (last_class() + 1) as class) c
    cross join lateral (select new_since(c.class) as since offset 0) z
    where b.last_value >> c.class & 1 = 1;
end;

-- Remembers that hosts have entered these classes of new pages, one bit for each class. Null = no class. If two
-- sessions write at the same time, one change may be lost. The next tick finds the class again.
create or replace function note_classes(classes bigint) returns void
language plpgsql volatile as $$
-- plans: inherited
declare
    known constant bigint := (select last_value from new_classes);
begin
    if known & classes <> classes then
        perform setval('new_classes', known | classes);
    end if;
end $$;

-- Moves the horizon of each class of new pages, and finds the classes that hosts are in.
create or replace function advance_new_horizons(t timestamptz, recheck boolean) returns void
language plpgsql volatile as $$
-- plans: lookups
begin
    -- The horizon of a class that became empty moves once more, and then stays: an empty class gets no dead entries.
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

-- Moves each horizon to slack() before the first live entry. Sometimes rechecks from the beginning of the indexes: then
-- a horizon may also move back.
create or replace function advance_horizons(t timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups
declare
    since   constant timestamptz := clock_timestamp();
    -- True if the time of a recheck has come. Also true if a horizon lies in the future: then the clock was set back,
    -- and rows that are written now are below the horizon.
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
    -- inbox.at is always the time of the real clock, even in a simulation that passes another t.
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
