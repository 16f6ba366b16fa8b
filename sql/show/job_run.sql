-- job_run: the runs of all jobs.

create or replace view recrawl.job_run as
select job, started_at,
       date_part('epoch', coalesce(ended_at, least(clock_timestamp(), alive_until)) - started_at) as seconds,
       case when ended_at is null and run_is_dead(j) then false else ok end as ok,
       case when ended_at is not null then message
            when run_is_dead(j) then died()
            else 'is running' end as message
from job j
order by started_at;
select describe_view('recrawl.job_run',
    'One row for each run of a batch job. The jobs upkeep, vitals and retention run all the time, so their normal runs '
    'have no row. They get a row when they begin to fail, and another one when they work again.',
    'seconds', 'How long the run took, or how long it has been running.',
    'ok', 'True if the run succeeded; null while it runs.');
