-- Sums up reports to minutes, and minutes to hours. The last five minutes are summed up again each time, because the
-- reports of a transaction become visible only when it ends.

-- The beginning of the minute of a time.
create or replace function minute_of(t timestamptz) returns timestamptz
language sql immutable parallel safe
return date_bin('1 minute', t, timestamptz '1970-01-01 00:00+00');

-- The beginning of the hour of a time, the same in every time zone.
create or replace function hour_of(t timestamptz) returns timestamptz
language sql immutable parallel safe
return date_bin('1 hour', t, timestamptz '1970-01-01 00:00+00');

-- How often a letter occurs in a text.
create or replace function times(letter text, letters text) returns int
language sql immutable parallel safe
return length(letters) - length(replace(letters, letter, ''));

-- Sums up the reports of a range of minutes again.
create or replace function fold_pulses(since timestamptz, until timestamptz) returns void
language plpgsql volatile as $$
-- plans: whole; writes vital; locks nothing: the caller holds vitals_state
declare
    parts constant int[] := array(
        select log_part(at) from generate_series(since, until + interval '10 minutes', '10 minutes') at);
begin
    insert into vital (
        at, fetches, changed, unchanged, first, missing, failed, throttled, denied, retries, change_unknown, stale,
        duplicate, refused,
        late_1m, late_10m, late_1h, late_6h, late_1d, late_more, late_seconds, skipped, expired, missed)
    -- The comment of pulse.letters lists the letters. s, r and x are reports that are no fetches. Taking away all small
    -- letters leaves the capitals, which are retries.
    select minute_of(p.at), sum(length(translate(p.letters, 'srx', ''))),
           sum(times('c', k.letters)), sum(times('u', k.letters) + times('n', k.letters)),
           sum(times('f', k.letters)), sum(times('m', k.letters)), sum(times('e', k.letters)),
           sum(times('t', k.letters)), sum(times('d', k.letters)),
           sum(length(translate(p.letters, 'cdefmnrstux', ''))), sum(times('n', k.letters)),
           sum(times('s', k.letters)), sum(times('r', k.letters)), sum(times('x', k.letters)),
           sum(l.within_1m), sum(l.within_10m), sum(l.within_1h), sum(l.within_6h), sum(l.within_1d), sum(l.more),
           sum(l.seconds), coalesce(sum(p.skipped), 0),
           coalesce(sum(p.expired), 0), coalesce(sum(p.missed), 0)
    from pulse p
    cross join lateral (select lower(p.letters) as letters offset 0) k
    cross join lateral (
        select count(*) filter (where s <= 60) as within_1m,
               count(*) filter (where s > 60 and s <= 600) as within_10m,
               count(*) filter (where s > 600 and s <= 3600) as within_1h,
               count(*) filter (where s > 3600 and s <= 21600) as within_6h,
               count(*) filter (where s > 21600 and s <= 86400) as within_1d,
               count(*) filter (where s > 86400) as more,
               coalesce(sum(s::float8), 0) as seconds
        from unnest(p.late) s
    ) l
    where p.part = any (parts) and p.at >= since and p.at < until
    group by minute_of(p.at)
    on conflict (at) do update set
        (fetches, changed, unchanged, first, missing, failed, throttled, denied, retries, change_unknown, stale,
         duplicate, refused,
         late_1m, late_10m, late_1h, late_6h, late_1d, late_more, late_seconds, skipped, expired, missed) = (
            excluded.fetches, excluded.changed, excluded.unchanged, excluded.first, excluded.missing, excluded.failed,
            excluded.throttled, excluded.denied, excluded.retries, excluded.change_unknown, excluded.stale,
            excluded.duplicate, excluded.refused,
            excluded.late_1m, excluded.late_10m, excluded.late_1h, excluded.late_6h, excluded.late_1d,
            excluded.late_more, excluded.late_seconds, excluded.skipped, excluded.expired,
            excluded.missed);
end $$;

-- Sums up again the hour that `since` lies in, and all later hours.
create or replace function fold_minutes(since timestamptz) returns void
language sql volatile as $$
-- plans: whole; writes vital_hour; locks nothing: the caller holds vitals_state
    delete from vital_hour where at >= hour_of(since);
    insert into vital_hour (
        at, fetches, changed, unchanged, first, missing, failed, throttled, denied, retries, change_unknown, stale,
        duplicate, refused,
        late_1m, late_10m, late_1h, late_6h, late_1d, late_more, late_seconds, skipped,
        handed_out, expired, missed, calls, empty_calls, pages_added,
        due, due_crawler, due_gap, due_blocked, new_waiting, leased,
        pages, hosts, hosts_ready, hosts_blocked, hosts_capped, ready_wait, inbox_wait,
        fresh, fresh_error, covered, expected, limit_with_gaps, limit_without_gaps, budget)
    select hour_of(at), sum(fetches), sum(changed), sum(unchanged), sum(first), sum(missing), sum(failed),
           sum(throttled), sum(denied), sum(retries), sum(change_unknown), sum(stale), sum(duplicate), sum(refused),
           sum(late_1m), sum(late_10m), sum(late_1h), sum(late_6h), sum(late_1d), sum(late_more),
           sum(late_seconds), sum(skipped),
           sum(handed_out), sum(expired), sum(missed), sum(calls), sum(empty_calls), sum(pages_added),
           avg(due), avg(due_crawler), avg(due_gap), avg(due_blocked), avg(new_waiting), avg(leased),
           avg(pages), avg(hosts), avg(hosts_ready), avg(hosts_blocked), avg(hosts_capped),
           max(ready_wait), max(inbox_wait),
           avg(fresh), avg(fresh_error), avg(covered), avg(expected), avg(limit_with_gaps), avg(limit_without_gaps),
           avg(budget)
    from vital
    where at >= hour_of(since)
    group by hour_of(at)
$$;
