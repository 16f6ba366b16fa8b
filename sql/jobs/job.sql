-- The runs of batch jobs. (The SQL of the job vitals is in vitals/, the SQL of upkeep in upkeep/tick.sql.)
--
-- Each job has at most one open run. A run may write only while it is open, and its token proves that (a fence). A lock
-- could not do this, because a run has no open transaction between two writes.

-- Whether an open run is dead: its time alive_until has passed, or the session that it writes with has ended.
create or replace function run_is_dead(run job) returns boolean
language sql stable
begin atomic
    -- A time far ahead was written while the clock was ahead.
    select run.alive_until not between clock_timestamp() and clock_timestamp() + interval '2 hours'
           or run.pid is not null and not exists (select from pg_stat_activity a where a.pid = run.pid);
end;

-- The message of a run that nobody ended.
create or replace function died() returns text
language sql immutable
return 'its process died, or lost its connection'::text;

-- Ends the runs whose workers died, as failed. A worker that dies leaves its run open. So does a worker that loses its
-- connection, because it can write no more.
create or replace function end_dead_runs() returns void
language plpgsql volatile security definer as $$
-- plans: lookups; writes job; locks job (passing over locked ones)
declare
    dead text;
begin
    for dead in
        update job j set ended_at = clock_timestamp(), ok = false, message = died()
        from (select r.token from job r where r.ended_at is null and run_is_dead(r) for update skip locked) d
        where j.token = d.token
        returning j.job
    loop
        perform note_event(clock_timestamp(), 'job', dead, 'failed: ' || died());
    end loop;
end $$;

-- Begins a run of a job and returns its token. Raises while another worker runs the job. The run writes with the time
-- as_of, if a simulation gives it, otherwise with the present time.
create or replace function start_job(job text, alive_for interval, as_of timestamptz default null) returns bigint
language plpgsql volatile security definer as $$
-- plans: lookups; writes job; locks job
#variable_conflict use_column
declare
    since timestamptz;
    token bigint;
begin
    perform skip_lost_ids(), end_dead_runs();
    -- The WHERE looks for an open run first. Without it, the INSERT would wait while the other run writes.
    insert into job (token, job, started_at, alive_until, pid, as_of)
    select nextval('job_token'), start_job.job, coalesce(start_job.as_of, clock_timestamp()),
           clock_timestamp() + alive_for, pg_backend_pid(), start_job.as_of
    where not exists (select from job j where j.job = start_job.job and j.ended_at is null)
    on conflict (job) where ended_at is null do nothing
    returning job.token into token;
    if token is null then
        select j.started_at into since from job j where j.job = start_job.job and j.ended_at is null;
        raise exception using
            message = format('%s is being run by another worker since %s', job, to_char(since, 'HH24:MI:SS')),
            hint = 'If that worker died, it is free again within a minute.',
            errcode = 'object_in_use';
    end if;
    return token;
end $$;

-- Returns the present time of a run, after it noted that the run is alive. Raises if the run has ended, for example
-- because another run took over. A run that writes locks its row, so that no other run can take over before the write
-- is committed.
create or replace function keep_job(token bigint, alive_for interval) returns timestamptz
language plpgsql volatile security definer as $$
-- plans: lookups; writes job; locks job
declare
    t timestamptz;
begin
    update job j set alive_until = clock_timestamp() + alive_for
    where j.token = keep_job.token and j.ended_at is null
    returning coalesce(j.as_of, clock_timestamp()) into t;
    if not found then
        raise exception using
            message = 'another worker took this job over', errcode = 'object_not_in_prerequisite_state';
    end if;
    return t;
end $$;

-- Ends a run, with its result and message.
create or replace function end_job(token bigint, is_ok boolean, message text) returns void
language plpgsql volatile security definer as $$
-- plans: lookups; writes job; locks job
declare
    ended job;
begin
    update job j set ended_at = coalesce(j.as_of, clock_timestamp()), ok = is_ok, message = end_job.message
    where j.token = end_job.token and j.ended_at is null
    returning j.* into ended;
    if found then
        perform note_event(ended.ended_at, 'job', ended.job,
                           case when is_ok or end_job.message = 'stopped' then '' else 'failed: ' end
                           || coalesce(end_job.message, ''));
    end if;
end $$;
grant execute on function end_dead_runs, start_job, keep_job, end_job to recrawl_worker;

-- The last page_id that was given. The role recrawl_worker may not read the sequence.
create or replace function newest_page() returns bigint
language sql stable security definer as $$
    select last_value from page_id
$$;
grant execute on function newest_page to recrawl_worker;
