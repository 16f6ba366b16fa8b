-- Finds the jobs that are due; workers ask once a second. A job is due by the settings rates_every, opic_every and
-- allocate_every. It is due soon after a failed run, and more often while the crawl is young.

-- The first runs find few pages and little evidence. Their results should not stay for six hours, the default of
-- rates_every and opic_every. Therefore the pause after a run is at first as long as the crawl is old, and at least a
-- minute. The crawl begins with the first vitals that count pages.
--
-- «between j.job and j.job» means «= j.job». With «=» the planner may read all runs in the order of their tokens to
-- find the last run of a job.
create or replace view recrawl.job_schedule as
select j.job, j.every,
       case when running.token is null and (j.every is not null)
            then case when last.token is null              -- it never ran
                          then least((select min(v.at) from vital v), now.t)
                      when greatest(last.started_at, last.ended_at) > now.t + small_step()
                          then now.t                          -- the clock was ahead when it ran
                      when last.message = 'stopped' then last.ended_at
                      when failed.times > 0
                          then last.ended_at + least(interval '1 second' * 4 ^ (failed.times - 1), interval '6 hours')
                      when crawl.began <= now.t
                          then least(last.started_at + j.every,
                                     last.ended_at + greatest(last.ended_at - crawl.began, interval '1 minute'))
                      else last.started_at + j.every         -- no page yet, or the clock was ahead
                      end
       end as due_at,
       running.started_at as running_since, ok.ended_at as succeeded_at, failed.times as failures,
       last.message, newest.started_at as ran_at, newest.seconds,
       case when newest.is_dead then false else newest.ok end as ok
from setting s
cross join lateral (
    values ('rates', s.rates_every), ('opic', s.opic_every), ('allocate', s.allocate_every)
) as j (job, every)
cross join (select clock_timestamp() as t offset 0) now
left join lateral (
    select r.token, r.started_at from job r where r.job = j.job and r.ended_at is null
) running on true
cross join (
    select least((select at + interval '1 hour' from vital_hour where pages > 0 order by at limit 1),
                 (select at from vital where pages > 0 order by at limit 1)) as began
) crawl
left join lateral (
    select r.token, r.started_at, r.ended_at, r.message
    from job r
    where r.job between j.job and j.job and r.ended_at is not null
    order by r.job desc, r.token desc
    limit 1
) last on true
left join lateral (
    select r.token, r.ended_at
    from job r
    where r.job between j.job and j.job and r.ok
    order by r.job desc, r.token desc
    limit 1
) ok on true
cross join lateral (
    select count(*) as times
    from (select from job r
          where r.job = j.job and r.token > coalesce(ok.token, 0) and r.ended_at is not null
                and r.message is distinct from 'stopped'
          limit 20) f
) failed
left join lateral (
    select r.started_at, r.ok, r.ended_at is null and run_is_dead(r) as is_dead,
           date_part('epoch', coalesce(r.ended_at, least(now.t, r.alive_until)) - r.started_at) as seconds
    from job r
    where r.job between j.job and j.job
    order by r.job desc, r.token desc
    limit 1
) newest on true;
select describe_view('recrawl.job_schedule',
    'One row for each batch job: when it is due, and how its last run ended. allocate may run earlier, see the setting '
    'allocate_every.',
    'job', 'The name of the job, as `recrawl run` knows it.',
    'every', 'The time between two runs, from the setting of the job; null = the job runs only if you start it.',
    'due_at', 'The latest time at which the next run starts; null = the job runs now, or it runs only if you start it.',
    'running_since', 'The start of the run that runs now; null = the job does not run now.',
    'succeeded_at', 'The end of the last run that succeeded; null = no run has succeeded yet.',
    'failures', 'The number of failed runs since succeeded_at, counted up to 20.',
    'message', 'The message of the last run that ended.',
    'ran_at', 'The start of the last run, even if it still runs; null = the job never ran.',
    'seconds', 'How long the last run took, or how long it has been running.',
    'ok', 'True if the last run succeeded; null while it runs.');

-- Why an allocation is worth a run before it is due; null = it is not. ran_at, seconds: its last run. Reasons: a person
-- changed settings or hosts, or the budget moved by more than 5 %. A measured budget moves without a person.
--
-- Early runs take at most a twentieth of the time: first the job rests 20 times as long as its last run took, and at
-- least 50 seconds. Exception: after a person set another policy.
create or replace function why_allocate_early(t timestamptz, ran_at timestamptz, seconds float8) returns text
language sql stable as $$
-- plans: lookups
    select case when w.at between ran_at and t - interval '5 seconds' then 'settings or hosts were changed'
                when abs(s.budget - a.budget) > 0.05 * a.budget then 'budget moved' end
    from setting s
    cross join (select from_micros(last_value) as at from steered) w
    left join (select policy, budget from allocation order by token desc limit 1) a on true
    where date_part('epoch', t - ran_at) - seconds not between 0 and greatest(50, 20 * seconds)
       or (s.policy <> a.policy and w.at > ran_at)
$$;

-- The jobs that must run now, with the reason, and the newest token of all runs.
create or replace function due_jobs() returns table (job text, why text, newest bigint)
language sql volatile security definer as $$
-- plans: lookups
    select j.job, j.why, n.last_value - (not n.is_called)::int
    from (select job,
                 case when due_at <= clock_timestamp() then 'due'
                      when job = 'allocate' and due_at is not null and failures = 0
                          then why_allocate_early(clock_timestamp(), ran_at, seconds) end as why
          from recrawl.job_schedule) j
    cross join job_token n
    where j.why is not null
$$;
grant execute on function due_jobs to recrawl_worker;
