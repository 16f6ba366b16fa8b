-- Failures that no run can write: the process of the run died, or the job has no runs because it works all the time.

-- Records that a run never started, or that its process died (has_died). A worker knows why its child process died, but
-- the run of the child counts as alive until the session of the child has ended. «The run» is the oldest run after the
-- token `newest` that died or has not ended. A later run may be of a person, who started it just before the call.
-- Returns false if the worker must call this function again:
--
--   no run came after `newest`             writes a failed run with the message    true
--   has_died, and the run has died         the run gets the message                true
--   has_died, and it still has a session   nothing                                 false
--   otherwise                              nothing: the run writes its own end     true
create or replace function note_failure(job text, newest bigint, message text, has_died boolean) returns boolean
language plpgsql volatile security definer as $$
-- plans: lookups; writes job; locks job
declare
    t   constant timestamptz := clock_timestamp();
    run job;
begin
    if not exists (select from job j where j.job = note_failure.job and j.token > newest) then
        insert into job (token, job, started_at, alive_until, ended_at, ok, message)
        values (nextval('job_token'), note_failure.job, t, t, t, false, note_failure.message);
        perform note_event(t, 'job', note_failure.job, 'failed: ' || message);
        return true;
    end if;
    if has_died then
        perform end_dead_runs();
        select j.* into run from job j
        where j.job = note_failure.job and j.token > newest and (j.ended_at is null or j.message = died())
        order by j.token
        limit 1;
        update job j set message = note_failure.message where j.token = run.token and j.message = died();
        return run.token is null or found;
    end if;
    return true;
end $$;

-- Records that a job that runs all the time (upkeep, vitals, retention) fails with an error, or works again (null).
-- Writes a row only if that was not known. The function waits at most 10 ms for a lock.
create or replace function note_health(job text, error text) returns void
language plpgsql volatile security definer set lock_timeout = '10ms' as $$
-- plans: lookups; writes job
declare
    t        constant timestamptz := clock_timestamp();
    was_well constant boolean := coalesce((
        select j.ok from job j
        where j.job between note_health.job and note_health.job
        order by j.job desc, j.token desc
        limit 1), true);
begin
    if was_well <> (error is null) then
        insert into job (token, job, started_at, alive_until, ended_at, ok, message)
        values (nextval('job_token'), note_health.job, t, t, t, error is null, error);
        perform note_event(t, 'job', note_health.job, coalesce('failed: ' || error, 'works again'));
    end if;
end $$;

grant execute on function note_failure, note_health to recrawl_worker;
