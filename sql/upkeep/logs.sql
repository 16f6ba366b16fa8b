-- Logs are append-only tables without an index. Each log has four parts. Rows go into one part for half of the time
-- that the log is kept, then into the next part. The next part is emptied before its turn.
--
--    fetch_log   each observation that changed the evidence of a page, if the setting keep_log is set
--    pulse       for each report its outcomes; also ended leases and missed slots. The job vitals adds them up

-- The part of a log (0 to 3) for rows of a time.
create or replace function log_part(t timestamptz, keep interval) returns int
language sql stable parallel safe      -- like extract(); an immutable function would not be inlined
return mod(floor(2 * extract(epoch from t) / extract(epoch from keep))::bigint, 4)::int;

-- How long rows of pulse are kept, at least.
create or replace function pulse_kept() returns interval
language sql immutable parallel safe
return interval '30 minutes';

-- Counts leased pages that come back without a request, because their lease ended or because their slot had passed.
-- Nothing is written if no worker ran for a day, because then no job adds up the rows.
create or replace function note_no_request(t timestamptz, expired int, missed int) returns void
language plpgsql volatile as $$
-- plans: lookups; writes pulse; locks nothing
begin
    insert into pulse (part, at, letters, expired, missed)
    select log_part(t, pulse_kept()), t, '', note_no_request.expired, note_no_request.missed
    from worker_ticked w
    where from_micros(w.last_value) > clock_timestamp() - interval '1 day';
end $$;

-- Empties the next part of each log. Empties the whole fetch log if keep_log is not set. If another session reads a
-- part (pg_dump, for example) or empties it, the part is emptied at a later tick.
create or replace function rotate_log_at(t timestamptz) returns void
language plpgsql volatile set lock_timeout = '10ms' as $$
declare
    stale  text;
    filled boolean;
begin
    for stale in
        select log || '_' || part
        from (select 'fetch_log', keep_log from setting union all select 'pulse', pulse_kept()) l (log, keep)
        cross join generate_series(0, 3) part
        where keep is null or part = mod(log_part(t, keep) + 1, 4)
    loop
        begin
            execute format('select exists (select from %I)', stale) into filled;
            if filled then
                execute format('truncate %I', stale);
            end if;
        exception when lock_not_available then
            null;
        end;
    end loop;
end $$;

-- The belief about a page comes from all of its fetches. So only pages are shown whose fetches are all in the log. The
-- first fetch of a page shows no change and is never logged.
create or replace view visit_to_audit as
select l.page_id,
       l.days,
       l.changed::int as changed,
       b.changes as belief_changes,
       b.days as belief_days
from (select *, count(*) over (partition by page_id) as visits from fetch_log) l
join page p on p.page_id = l.page_id and p.successes = l.visits + 1
join host_terms common on common.host_id = 0
left join host_terms own on own.host_id = p.host_id
cross join lateral belief(null, p.seen_changes, p.seen_days, own, common) b
order by l.page_id, l.at;
comment on view visit_to_audit is
    'Logged fetches, page by page, and the belief about the rate of the page. Only pages whose fetches are all logged.';
grant select on visit_to_audit to recrawl_worker;
