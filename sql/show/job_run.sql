create or replace view recrawl.job_run as
select job,
       started_at,
       date_part('epoch', coalesce(ended_at, least(clock_timestamp(), alive_until)) - started_at) as seconds,
       case when ended_at is null and recrawl_internal.run_is_dead(j) then false else ok end as ok,
       case when ended_at is not null then message
            when recrawl_internal.run_is_dead(j) then recrawl_internal.died()
            else 'is running' end as message
from recrawl_internal.job j
order by started_at;
comment on view recrawl.job_run is
    'Every run of a batch job; ok is null while it runs. Of upkeep, vitals and retention, which run all the time, that '
    'they began to fail, and that they work again.';
select recrawl_internal.copy_comments('recrawl.job_run');
comment on column recrawl.job_run.seconds is 'How long it took, or has taken.';
comment on column recrawl.job_run.ok is 'Whether its result is in force; null while it runs.';
grant select on recrawl.job_run to recrawl_reader;
