-- Logs: append-only, without an index, in four parts that take turns, each for half of the time that is kept; the one
-- whose turn is next is emptied before.
--
--     fetch_log   every observation that taught something about a page's rate, where the setting keep_log asks for it
--     pulse       what each report brought, which leases ended and which slots were missed, until the job vitals has
--                 added it up

create or replace function recrawl_internal.log_part(t timestamptz, keep interval) returns int
language sql immutable parallel safe
begin atomic
    select mod(floor(2 * extract(epoch from t) / extract(epoch from keep))::bigint, 4)::int;
end;
comment on function recrawl_internal.log_part(timestamptz, interval) is 'Which part of a log a time belongs to.';

create or replace function recrawl_internal.pulse_kept() returns interval
language sql immutable parallel safe
begin atomic select interval '30 minutes'; end;
comment on function recrawl_internal.pulse_kept() is 'How long pulse is kept, at least.';

-- If no worker ran for a day, no job adds up the rows.
create or replace function recrawl_internal.note_no_request(t timestamptz, expired int, missed int) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes pulse; locks nothing
begin
    insert into pulse (part, at, letters, expired, missed)
    select log_part(t, pulse_kept()), t, '', note_no_request.expired, note_no_request.missed
    from worker_ticked w
    where from_micros(w.last_value) > clock_timestamp() - interval '1 day';
end $$;
comment on function recrawl_internal.note_no_request(timestamptz, int, int) is
    'Counts leased pages that come back without a request: their lease ended, or their slot had passed.';

-- A part that another session reads, such as pg_dump, is emptied at another time.
create or replace function recrawl_internal.rotate_log_at(t timestamptz) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set lock_timeout = '10ms'
as $$
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
        execute format('select exists (select from %I)', stale) into filled;
        if filled then
            begin
                execute format('truncate %I', stale);
            exception when lock_not_available then
                null;
            end;
        end if;
    end loop;
end $$;
comment on function recrawl_internal.rotate_log_at(timestamptz) is
    'Empties the part of each log whose turn is next; all of the fetch log where none is wanted.';

-- The filter's belief is about all of a page's visits, so only pages are looked at whose visits are all in the log.
create or replace view recrawl_internal.visit_to_audit as
select l.page_id,
       l.days,
       l.changed::int as changed,
       b.changes as belief_changes,
       b.days as belief_days
from (select *, count(*) over (partition by page_id) as visits from recrawl_internal.fetch_log) l
join recrawl_internal.page p on p.page_id = l.page_id and p.fetches = l.visits + 1
join recrawl_internal.host_terms common on common.host_id = 0
left join recrawl_internal.host_terms own on own.host_id = p.host_id
cross join lateral recrawl_internal.belief(null, p.seen_changes, p.seen_days, own, common) b
order by l.page_id, l.at;
comment on view recrawl_internal.visit_to_audit is
    'Logged visits of pages of which all visits are logged, page by page, and what the filter believes of the page.';
grant select on recrawl_internal.visit_to_audit to recrawl_worker;
