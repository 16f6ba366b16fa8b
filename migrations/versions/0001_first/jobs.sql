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
    'Runs of jobs. A run that has not ended holds its job as long as its worker is alive.';
comment on column recrawl_internal.job.token is
    'The fence: a run writes only while no newer run of its job has started.';
comment on column recrawl_internal.job.job is 'The name of the job.';
comment on column recrawl_internal.job.started_at is 'When it started.';
comment on column recrawl_internal.job.alive_until is
    'If its worker gives no sign of life until then, the run is dead and the job is free.';
comment on column recrawl_internal.job.ended_at is 'When it ended, or was found dead.';
comment on column recrawl_internal.job.ok is 'True if its result is in force.';
comment on column recrawl_internal.job.message is 'A sentence about its result, or about its failure.';
comment on column recrawl_internal.job.pid is
    'The server process of its connection. When that process has ended, the run has ended too.';
comment on column recrawl_internal.job.as_of is
    'The time that the run takes for now, if a simulation gave it one; null = the clock.';

create table recrawl_internal.leader (
    only_row    boolean     primary key default true check (only_row),
    worker      uuid,
    alive_until timestamptz,
    pid         int
);
insert into recrawl_internal.leader default values;
comment on table recrawl_internal.leader is 'The worker that runs the batch jobs. The others wait until it is gone.';
comment on column recrawl_internal.leader.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.leader.worker is 'A random number that the worker chose; null = there was no worker.';
comment on column recrawl_internal.leader.alive_until is
    'If the worker gives no sign of life until then, another worker takes its place.';
comment on column recrawl_internal.leader.pid is
    'The server process of its connection. When that process has ended, another worker takes its place at once.';

create table recrawl_internal.allocation (
    token          bigint      primary key,
    started_at     timestamptz not null,
    seconds        float8      not null,
    policy         text        not null,
    objective      text        not null,
    budget         float8      not null,
    spent          float8      not null,
    new_pages      float8      not null default 0,
    retries        float8,
    pinned         float8,
    pinned_wanted  float8,
    price          float8,
    pages          bigint      not null,
    hosts          bigint      not null,
    capped_hosts   bigint      not null,
    utility        float8,
    polite_bound   float8,
    unpolite_bound float8,
    residual       float8      not null,
    spread         float8      not null,
    duality_gap    float8      not null,
    floor_days     float8,
    newest_page    bigint,
    worth          float8,
    handed_out     bigint
);
comment on table recrawl_internal.allocation is
    'Allocations that came into force, each with the proof that it is the best one.';
comment on column recrawl_internal.allocation.token is 'The run of the job.';
comment on column recrawl_internal.allocation.started_at is 'When the pages were read.';
comment on column recrawl_internal.allocation.seconds is 'From reading the pages until the prices were in force.';
comment on column recrawl_internal.allocation.policy is 'The setting policy.';
comment on column recrawl_internal.allocation.objective is 'The setting objective: the quantity that was maximised.';
comment on column recrawl_internal.allocation.budget is 'Fetches per day that could be spent, new pages included.';
comment on column recrawl_internal.allocation.spent is
    'Fetches per day given to pages. It is less than budget − new_pages − retries if gaps or the shortest interval '
    'leave no use for the rest.';
comment on column recrawl_internal.allocation.new_pages is 'Fetches per day that new pages were expected to take.';
comment on column recrawl_internal.allocation.retries is
    'Fetches per day left to pages that failed: the number that they took in the 24 hours before.';
comment on column recrawl_internal.allocation.pinned is
    'Fetches per day, of spent, given to pages with a pinned interval.';
comment on column recrawl_internal.allocation.pinned_wanted is
    'Fetches per day that these pages ask for. They get less if the budget or the slots of their hosts do not suffice.';
comment on column recrawl_internal.allocation.price is
    'Gain per day of the last fetch of the budget. Hosts at their cap have a higher price. null = every fetch that is '
    'left out would earn more than any number.';
comment on column recrawl_internal.allocation.pages is 'Pages that took part.';
comment on column recrawl_internal.allocation.hosts is 'Hosts of these pages.';
comment on column recrawl_internal.allocation.capped_hosts is 'Hosts whose gap, not the budget, decides.';
comment on column recrawl_internal.allocation.utility is
    'The objective reached, per unit of value; null = a loss without limit, because pages that change are not fetched.';
comment on column recrawl_internal.allocation.polite_bound is
    'The most that the objective can be within budget and gaps, without floors and ceilings.';
comment on column recrawl_internal.allocation.unpolite_bound is
    'The most that the objective can be within the budget alone.';
comment on column recrawl_internal.allocation.residual is
    'Relative difference between the sum of the frequencies and the fetches that must be spent.';
comment on column recrawl_internal.allocation.spread is
    'Relative spread of the gain of one more fetch, over pages that should have the same.';
comment on column recrawl_internal.allocation.duality_gap is
    'The objective is at most this far from the optimum, relatively.';
comment on column recrawl_internal.allocation.floor_days is
    'Longest interval in days of any page whose host may be fetched; null = there are no floors.';
comment on column recrawl_internal.allocation.newest_page is
    'Id of the newest page when the pages were read. Later runs count the pages found since.';
comment on column recrawl_internal.allocation.worth is
    'Sum of the values of all pages that took part; null = not recorded.';
comment on column recrawl_internal.allocation.handed_out is
    'Pages handed out until then. Later runs see from it how many fetches really happened.';

create table recrawl_internal.held_back (
    host_id    bigint primary key,
    pages      bigint      not null,
    gap        interval    not null,
    slot_every interval    not null,
    wanted     float8,
    frequency  float8      not null,
    gain       float8      not null,
    as_of      timestamptz not null
);
comment on table recrawl_internal.held_back is 'The hosts whose gap costs most, by the last allocation.';
comment on column recrawl_internal.held_back.host_id is 'The host.';
comment on column recrawl_internal.held_back.pages is 'Its pages that took part.';
comment on column recrawl_internal.held_back.gap is 'Least time between two requests to it.';
comment on column recrawl_internal.held_back.slot_every is
    'Time between two slots: the gap, and the window in which a request may start.';
comment on column recrawl_internal.held_back.wanted is
    'Fetches per day that its pages would get without a gap, at the price of the budget; null = more than any number.';
comment on column recrawl_internal.held_back.frequency is 'Fetches per day that its pages were given.';
comment on column recrawl_internal.held_back.gain is
    'Gain in the objective, per unit of value, if its gap were half as long. A close bound.';
comment on column recrawl_internal.held_back.as_of is 'When this was computed.';
