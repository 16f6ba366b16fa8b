-- Reads the newest reports, which are at the end of the log pulse.

-- The time of the last report, and the fetches per second over the last five minutes, or since the first report. Both
-- come from the last blocks of pulse: if there are many reports, only the last few thousand count. This works without a
-- running worker too, until the last worker has been gone for a day.
create or replace function last_pulses(t timestamptz, out last_report_at timestamptz, out fetches_per_second float8)
language plpgsql volatile as $$
-- plans: lookups
declare
    most      constant int := 64;      -- the most blocks that are read of a part, about 4,000 reports
    since     timestamptz := t - interval '5 minutes';
    part      text;
    first     int;
    found     record;
    oldest    timestamptz;
    fetches   bigint := 0;
begin
    for nth in 0 .. 1 loop
        part := 'pulse_' || mod(log_part(t) + 4 - nth, 4);
        first := greatest(0, blocks_of(part::regclass) - most);
        execute format(
            'select max(at) filter (where expired is null) as last, min(at) as first, '
            '       sum(length(translate(letters, ''srx'', ''''))) filter (where at > $1 and at <= $2) as fetches '
            'from %s where ctid >= $3', part)
        into found using since, t, format('(%s,0)', first)::tid;
        last_report_at := greatest(last_report_at, found.last);
        fetches := fetches + coalesce(found.fetches, 0);
        oldest := least(oldest, found.first);
        exit when first > 0;
    end loop;
    since := greatest(since, oldest);  -- later in a young crawl, or if only the last blocks are read
    fetches_per_second := fetches / greatest(date_part('epoch', t - since), 10);
end $$;
