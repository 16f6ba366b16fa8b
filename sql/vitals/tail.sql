-- What was reported of late, whether a worker runs or not: the last blocks of pulse.

create or replace function recrawl_internal.last_pulses(
    t timestamptz, out last_report_at timestamptz, out fetches_per_second float8
)
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
declare
    most      constant int := 64;      -- blocks read of a part, some four thousand reports
    since     timestamptz := t - interval '5 minutes';
    part      text;
    first     int;
    found     record;
    oldest    timestamptz;
    fetches   bigint := 0;
begin
    for nth in 0 .. 1 loop
        part := 'pulse_' || mod(log_part(t, pulse_kept()) + 4 - nth, 4);
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
    since := greatest(since, oldest);  -- a crawl that has just begun is not as slow as its first minutes were long
    fetches_per_second := fetches / greatest(date_part('epoch', t - since), 10);
end $$;
comment on function recrawl_internal.last_pulses(timestamptz) is
    'When something was reported last, and how many fetches a second over the last five minutes, or since reports '
    'began; where that would be much to read, over the last few thousand reports.';
