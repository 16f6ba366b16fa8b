-- The table pulse has a row for each report with its outcomes, and for ended leases and missed slots. The job vitals
-- adds them up. Rows are only appended, and the table has no index. It has four parts. Rows go into one part for half
-- of the time that they are kept, then into the next part. The next part is emptied before its turn.

-- How long rows of pulse are kept, at least.
create or replace function pulse_kept() returns interval
language sql immutable parallel safe
return interval '30 minutes';

-- The part of pulse (0 to 3) for rows of a time.
create or replace function log_part(t timestamptz) returns int
language sql stable parallel safe      -- like extract(); an immutable function would not be inlined
return mod(floor(2 * extract(epoch from t) / extract(epoch from pulse_kept()))::bigint, 4)::int;

-- Counts leased pages that come back without a request, because their lease ended or because their slot had passed.
-- Nothing is written if no worker ran for a day, because then no job adds up the rows.
create or replace function note_no_request(t timestamptz, expired int, missed int) returns void
language plpgsql volatile as $$
-- plans: lookups; writes pulse; locks nothing
begin
    insert into pulse (part, at, letters, expired, missed)
    select log_part(t), t, '', note_no_request.expired, note_no_request.missed
    from worker_ticked w
    where from_micros(w.last_value) > clock_timestamp() - interval '1 day';
end $$;

-- Empties the next part of pulse. If another session reads it (pg_dump, for example) or empties it, it is emptied at a
-- later tick.
create or replace function rotate_log_at(t timestamptz) returns void
language plpgsql volatile set lock_timeout = '10ms' as $$
declare
    stale  constant text := 'pulse_' || mod(log_part(t) + 1, 4);
    filled boolean;
begin
    execute format('select exists (select from %I)', stale) into filled;
    if filled then
        execute format('truncate %I', stale);
    end if;
exception when lock_not_available then
    null;
end $$;
