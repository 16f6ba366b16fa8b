-- Batch jobs and what they brought into force.

create or replace view recrawl.job_run as
select job,
       started_at,
       extract(epoch from coalesce(ended_at, least(clock_timestamp(), alive_until)) - started_at)::float8 as seconds,
       case when ended_at is null and alive_until < clock_timestamp() then false else ok end as ok,
       case when ended_at is null then case when alive_until < clock_timestamp() then 'its worker died' else 'is running' end else message end as message
from recrawl_internal.job
order by started_at;
comment on view recrawl.job_run is 'Every run of a batch job; ok is null while it runs.';

create or replace view recrawl.allocation_run as
select started_at, policy, objective::text as objective, budget, spent, budget - spent as unspent, price, pages, hosts, capped_hosts,
       utility, polite_bound, unpolite_bound, residual, spread, duality_gap,
       polite_bound - utility as limits_cost, floor_days, seconds
from recrawl_internal.allocation
order by started_at;
comment on view recrawl.allocation_run is
    'Every allocation that came into force. budget, spent and unspent in fetches per day; utility and its bounds per unit of value; residual, spread and duality_gap prove that it is the optimum; floor_days: the longest interval that floors leave a page.';
comment on column recrawl.job_run.job is 'opic, rates or allocate.';
comment on column recrawl.job_run.started_at is 'When it began.';
comment on column recrawl.job_run.seconds is 'How long it took, or has taken.';
comment on column recrawl.job_run.ok is 'Whether its result is in force; null while it runs.';
comment on column recrawl.job_run.message is 'What it did, or why it failed.';
comment on column recrawl.allocation_run.started_at is 'When the pages were read.';
comment on column recrawl.allocation_run.policy is 'OPT_POLITE: the best within the budget and every host''s gap.';
comment on column recrawl.allocation_run.objective is 'What was maximised.';
comment on column recrawl.allocation_run.budget is 'Fetches per day that could be spent.';
comment on column recrawl.allocation_run.spent is 'Fetches per day given to pages.';
comment on column recrawl.allocation_run.unspent is 'Fetches per day for which the hosts'' gaps and the shortest interval left no use.';
comment on column recrawl.allocation_run.price is 'What the last fetch of the budget earns per day.';
comment on column recrawl.allocation_run.pages is 'Pages that took part.';
comment on column recrawl.allocation_run.hosts is 'Hosts of these pages.';
comment on column recrawl.allocation_run.capped_hosts is 'Hosts whose gap, not the budget, decides.';
comment on column recrawl.allocation_run.utility is 'The objective reached, per unit of value; for freshness, the share of the value that is fresh.';
comment on column recrawl.allocation_run.polite_bound is 'What it could at most be within budget and gaps, without floors and ceilings.';
comment on column recrawl.allocation_run.unpolite_bound is 'What it could at most be within the budget alone.';
comment on column recrawl.allocation_run.residual is 'How far, relatively, the frequencies miss what must be spent.';
comment on column recrawl.allocation_run.spread is 'How far, relatively, what a fetch earns differs between pages that should earn the same.';
comment on column recrawl.allocation_run.duality_gap is 'How far, relatively, the objective may at most be from the optimum.';
comment on column recrawl.allocation_run.limits_cost is 'What exploration and the longest and shortest interval cost of the polite bound.';
comment on column recrawl.allocation_run.floor_days is 'The longest interval in days that floors leave any page of a host that may be fetched.';
comment on column recrawl.allocation_run.seconds is 'From reading the pages until the prices were in force.';
