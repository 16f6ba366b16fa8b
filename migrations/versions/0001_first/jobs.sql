-- Runs of batch jobs, and the results of the job allocate. (Prices are in host_terms, runs of opic in graph.sql.)
--
--     start_job ──▶ running: ended_at is null, holds its job ──▶ ended: ok, or failed with a message
--                      │ alive_until passes, or its connection (pid) is gone
--                      └──▶ found dead: another worker may start the job. Its writes are refused by their token.

create sequence recrawl_internal.job_token;
comment on sequence recrawl_internal.job_token is 'Ids of runs. The newest token of a job may write its results.';

create table recrawl_internal.job (
    token       bigint      primary key,
    job         text        not null,
    started_at  timestamptz not null,
    alive_until timestamptz not null,
    ended_at    timestamptz,
    ok          boolean,
    message     text,
    pid         int,
    as_of       timestamptz
);
create unique index job_running on recrawl_internal.job (job) where ended_at is null;
create index job_by_name on recrawl_internal.job (job, token);
comment on table recrawl_internal.job is
    'Runs of jobs. While a run has not ended and its worker is alive, no other run of the same job can start.';
comment on column recrawl_internal.job.token is
    'The number of the run. A run may write only while no newer run of its job has started.';
comment on column recrawl_internal.job.job is 'The name of the job.';
comment on column recrawl_internal.job.started_at is 'The time when the run started.';
comment on column recrawl_internal.job.alive_until is
    'If the worker gives no sign of life until this time, the run is dead and another one may start.';
comment on column recrawl_internal.job.ended_at is 'The time when the run ended, or was found dead.';
comment on column recrawl_internal.job.ok is 'True if the result of the run is in force.';
comment on column recrawl_internal.job.message is 'A sentence about its result, or about its failure.';
comment on column recrawl_internal.job.pid is
    'The server process of the worker''s connection. If this process has ended, the run has ended too.';
comment on column recrawl_internal.job.as_of is
    'The time that a simulation gave the run as the present time; null = the run uses the clock.';

create table recrawl_internal.leader (
    only_row    boolean     primary key default true check (only_row),
    worker      uuid,
    alive_until timestamptz,
    pid         int
);
insert into recrawl_internal.leader default values;
comment on table recrawl_internal.leader is
    'The worker that runs the batch jobs. The other workers wait until it has ended.';
comment on column recrawl_internal.leader.only_row is 'Always true, so that the table has only one row.';
comment on column recrawl_internal.leader.worker is
    'A random number that the worker chose; null = there was no worker.';
comment on column recrawl_internal.leader.alive_until is
    'If the worker gives no sign of life until then, another worker takes its place.';
comment on column recrawl_internal.leader.pid is
    'The server process of its connection. When that process has ended, another worker takes its place immediately.';

create table recrawl_internal.allocation (
    token          bigint      primary key,
    started_at     timestamptz not null,
    seconds        float8      not null,
    policy         text        not null,
    objective      text        not null,
    budget         float8      not null,
    for_revisits   float8      not null,
    for_new        float8      not null default 0,
    for_retries    float8,
    pinned         float8,
    pinned_wanted  float8,
    price          float8,
    pages          bigint      not null,
    hosts          bigint      not null,
    capped_hosts   bigint      not null,
    utility        float8,
    limit_with_gaps   float8,
    limit_without_gaps float8,
    residual       float8      not null,
    spread         float8      not null,
    duality_gap    float8      not null,
    longest_days float8,
    newest_page    bigint,
    worth          float8,
    handed_out     bigint
);
comment on table recrawl_internal.allocation is
    'One row for each allocation that came into force, with the proof that it is the best one.';
comment on column recrawl_internal.allocation.token is 'The run of the job.';
comment on column recrawl_internal.allocation.started_at is 'The time when the pages were read.';
comment on column recrawl_internal.allocation.seconds is 'Time from reading the pages until the prices were in force.';
comment on column recrawl_internal.allocation.policy is 'The setting policy at that time.';
comment on column recrawl_internal.allocation.objective is
    'The setting objective at that time: the quantity that was maximised.';
comment on column recrawl_internal.allocation.budget is 'Fetches per day that could be spent, new pages included.';
comment on column recrawl_internal.allocation.for_revisits is
    'Fetches per day given to pages that were fetched before. Some of the budget stays unused if gaps or '
    'shortest_interval leave no use for it.';
comment on column recrawl_internal.allocation.for_new is 'Fetches per day that new pages were expected to take.';
comment on column recrawl_internal.allocation.for_retries is
    'Fetches per day reserved for pages that failed: as many as they took in the 24 hours before.';
comment on column recrawl_internal.allocation.pinned is
    'Fetches per day given to pages with a pinned interval. They are included in for_revisits.';
comment on column recrawl_internal.allocation.pinned_wanted is
    'Fetches per day that the pinned intervals ask for. The pages get less if the budget or the slots of their hosts '
    'are not enough.';
comment on column recrawl_internal.allocation.price is
    'The smallest gain for which a page gets one more fetch per day. Capped hosts have a higher price. null = '
    'infinite: the budget leaves nothing for pages that change.';
comment on column recrawl_internal.allocation.pages is 'The number of pages that took part.';
comment on column recrawl_internal.allocation.hosts is 'The number of hosts of these pages.';
comment on column recrawl_internal.allocation.capped_hosts is
    'The number of hosts whose fetches are limited by their gap, and not by the budget.';
comment on column recrawl_internal.allocation.utility is
    'The expected value of the objective, as a mean of all pages: pages with a higher value count more. null = minus '
    'infinity: pages that change get no fetches.';
comment on column recrawl_internal.allocation.limit_with_gaps is
    'The limit with gaps: the highest utility that the budget and the gaps allow.';
comment on column recrawl_internal.allocation.limit_without_gaps is
    'The limit without gaps: the highest utility that the budget allows if hosts had no gaps.';
comment on column recrawl_internal.allocation.residual is
    'How far the sums are from their targets: the largest relative error. All fetches together should be as many as '
    'can be spent. The fetches of a host should not be more than its slots.';
comment on column recrawl_internal.allocation.spread is
    'The largest relative difference between the gain of one more fetch of a page and the price of its host.';
comment on column recrawl_internal.allocation.duality_gap is
    'The best possible utility is at most this much higher than utility: 0.01 means 1 %. It has nothing to do with '
    'the gap of a host.';
comment on column recrawl_internal.allocation.longest_days is
    'Each page of a host that is not blocked is fetched at least once in this number of days; null = there is no '
    'minimum.';
comment on column recrawl_internal.allocation.newest_page is
    'The highest page_id when the pages were read. Later runs count the pages above it.';
comment on column recrawl_internal.allocation.worth is
    'The sum of the values of all pages that took part; null = it was not recorded.';
comment on column recrawl_internal.allocation.handed_out is
    'The number of pages handed out until then. Later runs compute from it how many fetches really happened.';

create table recrawl_internal.capped_hosts (
    host_id    bigint primary key,
    pages      bigint      not null,
    gap        interval    not null,
    slot_every interval    not null,
    wanted     float8,
    frequency  float8      not null,
    half_gap_gain float8      not null,
    as_of      timestamptz not null
);
comment on table recrawl_internal.capped_hosts is 'The hosts whose gap costs the most in the last allocation.';
comment on column recrawl_internal.capped_hosts.host_id is 'The host.';
comment on column recrawl_internal.capped_hosts.pages is 'The number of pages of the host that took part.';
comment on column recrawl_internal.capped_hosts.gap is 'The least time between two requests to the host.';
comment on column recrawl_internal.capped_hosts.slot_every is
    'Time between two slots: the gap plus the window in which a request may start.';
comment on column recrawl_internal.capped_hosts.wanted is
    'Fetches per day that the pages of the host would get without a gap; null = an infinite number.';
comment on column recrawl_internal.capped_hosts.frequency is 'Fetches per day that the pages of the host get.';
comment on column recrawl_internal.capped_hosts.half_gap_gain is
    'How much the utility would rise if the gap were half as long. It is an upper limit close to the true number.';
comment on column recrawl_internal.capped_hosts.as_of is 'The time when this was computed.';
