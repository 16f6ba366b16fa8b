-- Prices: how often pages change, what a fetch must earn on each host, and what follows for each page.

-- ------------------------------------------------------------------------------------------------------- settings

create type recrawl_internal.objective as enum ('freshness', 'new_content', 'poisson_freshness', 'harmonic', 'delay', 'age');
comment on type recrawl_internal.objective is 'What the crawl is to be best at.';

alter table recrawl_internal.setting
    add column budget float8
        constraint "budget must lie between 1e-6 and 1e12 fetches per day, or none"
        check (budget between 1e-6 and 1e12),
    add column objective recrawl_internal.objective not null default 'freshness',
    add column exploration real not null default 0.05
        constraint "exploration must lie between 0 and 0.5"
        check (exploration between 0 and 0.5),
    add column longest_interval interval
        constraint "longest_interval must lie between 1 minute and 10 years"
        check (longest_interval between '1 minute' and '10 years'),
    add column shortest_interval interval default '5 minutes'
        constraint "shortest_interval must lie between 1 second and 30 days"
        check (shortest_interval between '1 second' and '30 days'),
    add constraint "longest_interval must not be shorter than shortest_interval"
        check (longest_interval >= shortest_interval),
    add column keep_log interval
        constraint "keep_log must lie between 1 minute and 10 years"
        check (keep_log between '1 minute' and '10 years');
comment on column recrawl_internal.setting.frequency is 'fetches per day: of a page before the first allocation, and on average where there is no budget.';
comment on column recrawl_internal.setting.budget is 'fetches per day: over all pages that were fetched before; none = as many times frequency as there are such pages.';
comment on column recrawl_internal.setting.objective is 'name: what the next allocation maximises: freshness, new_content, poisson_freshness, harmonic, delay or age.';
comment on column recrawl_internal.setting.exploration is 'share: of the budget that keeps every page visited, however little a visit promises.';
comment on column recrawl_internal.setting.longest_interval is 'interval: no page waits longer for a visit, where half of its host''s slots suffice for that; none = no limit.';
comment on column recrawl_internal.setting.shortest_interval is 'interval: no page is visited more often; none = no limit.';

comment on column recrawl_internal.setting.keep_log is 'interval: how long observations are kept in the fetch log, for recrawl audit; none = no log.';

-- ---------------------------------------------------------------------------------------------------- pages, hosts

alter table recrawl_internal.page
    add column frequency real,
    add column seen_changes real not null default 0,
    add column seen_days real not null default 0;
comment on column recrawl_internal.page.rate is 'Changes per day, where somebody who knows pinned it; null = it is estimated.';
comment on column recrawl_internal.page.frequency is 'Fetches per day that its due times follow; brought up to date by reports and by allocation. Null = the setting.';
comment on column recrawl_internal.page.seen_changes is 'Evidence, with seen_days: its rate is believed to be Gamma distributed as if these were added to what its host''s prior saw.';
comment on column recrawl_internal.page.seen_days is 'See seen_changes.';

-- Apart from host, whose rows are locked and rewritten by every pop.
create table recrawl_internal.host_terms (
    host_id       bigint primary key,
    price         float8,
    ties          float8,
    floor         float8,
    is_capped     boolean,
    frequency     float8,
    objective     recrawl_internal.objective,
    prior_changes float8,
    prior_days    float8
) with (fillfactor = 80, autovacuum_vacuum_cost_delay = 0);
-- Before the first estimate: a change in five days on average, within a wide range.
insert into recrawl_internal.host_terms (host_id, prior_changes, prior_days) values (0, 0.7, 3.5);
comment on table recrawl_internal.host_terms is 'The terms on which a host''s pages are scheduled. Written by jobs alone; host_id 0 holds for hosts that have none of their own.';
comment on column recrawl_internal.host_terms.host_id is 'The host; 0 = all others.';
comment on column recrawl_internal.host_terms.price is 'What the next fetch of a page must earn per day; null = as host 0 says, whose own is null before the first allocation.';
comment on column recrawl_internal.host_terms.ties is 'Fetches per change of pages that earn exactly the price, where the budget or the gap runs out among equals; null = there are none.';
comment on column recrawl_internal.host_terms.floor is 'Fetches per day that each of its pages gets whatever it earns; null = as host 0 says.';
comment on column recrawl_internal.host_terms.is_capped is 'Its gap, not the budget, decides its price; null = it took no part.';
comment on column recrawl_internal.host_terms.frequency is 'Fetches per day that its pages were given in all.';
comment on column recrawl_internal.host_terms.objective is 'What the prices are prices of; in the row of host 0, for all.';
comment on column recrawl_internal.host_terms.prior_changes is 'With prior_days: the Gamma distribution of change rates that its new pages start from.';
comment on column recrawl_internal.host_terms.prior_days is 'See prior_changes.';

-- ------------------------------------------------------------------------------------------------------------ jobs

create sequence recrawl_internal.job_token;

create table recrawl_internal.job (
    token       bigint      primary key,
    job         text        not null,
    started_at  timestamptz not null,
    alive_until timestamptz not null,
    ended_at    timestamptz,
    ok          boolean,
    message     text
);
create unique index job_running on recrawl_internal.job (job) where ended_at is null;
comment on table recrawl_internal.job is 'Runs of the batch jobs. One that has not ended holds its job, as long as its worker is alive.';
comment on column recrawl_internal.job.token is 'The fence: what a run writes is taken only while no other run has taken over.';
comment on column recrawl_internal.job.job is 'rates, allocate.';
comment on column recrawl_internal.job.started_at is 'When it began.';
comment on column recrawl_internal.job.alive_until is 'A worker that has not been heard of until then is dead, and the job free.';
comment on column recrawl_internal.job.ended_at is 'When it ended, or was found dead.';
comment on column recrawl_internal.job.ok is 'Whether its result is in force.';
comment on column recrawl_internal.job.message is 'What it did, or why it failed.';

create table recrawl_internal.allocation (
    token          bigint      primary key,
    started_at     timestamptz not null,
    seconds        float8      not null,
    policy         text        not null,
    objective      recrawl_internal.objective not null,
    budget         float8      not null,
    spent          float8      not null,
    price          float8      not null,
    pages          bigint      not null,
    hosts          bigint      not null,
    capped_hosts   bigint      not null,
    utility        float8      not null,
    polite_bound   float8      not null,
    unpolite_bound float8      not null,
    residual       float8      not null,
    spread         float8      not null,
    duality_gap    float8      not null,
    floor_days     float8
);
comment on table recrawl_internal.allocation is 'Every allocation that came into force, with the proof that it is the best one.';
comment on column recrawl_internal.allocation.token is 'The run of the job.';
comment on column recrawl_internal.allocation.started_at is 'When the pages were read.';
comment on column recrawl_internal.allocation.seconds is 'From reading the pages until its prices were in force.';
comment on column recrawl_internal.allocation.policy is 'OPT_POLITE: the best within the budget and every host''s gap.';
comment on column recrawl_internal.allocation.objective is 'What was maximised.';
comment on column recrawl_internal.allocation.budget is 'Fetches per day that could be spent.';
comment on column recrawl_internal.allocation.spent is 'Fetches per day given to pages; less than the budget where the hosts'' gaps, or the shortest interval, leave no use for it.';
comment on column recrawl_internal.allocation.price is 'What the last fetch of the budget earns per day; hosts at their cap ask more.';
comment on column recrawl_internal.allocation.pages is 'Pages that took part.';
comment on column recrawl_internal.allocation.hosts is 'Hosts of these pages.';
comment on column recrawl_internal.allocation.capped_hosts is 'Hosts whose gap, not the budget, decides.';
comment on column recrawl_internal.allocation.utility is 'The objective reached, per unit of value.';
comment on column recrawl_internal.allocation.polite_bound is 'What the objective could at most be within budget and gaps, without floors and ceilings.';
comment on column recrawl_internal.allocation.unpolite_bound is 'What it could at most be within the budget alone.';
comment on column recrawl_internal.allocation.residual is 'How far, relatively, the frequencies miss what must be spent.';
comment on column recrawl_internal.allocation.spread is 'How far, relatively, what a fetch earns differs between pages that should earn the same.';
comment on column recrawl_internal.allocation.duality_gap is 'How far, relatively, the objective may at most be from the optimum.';
comment on column recrawl_internal.allocation.floor_days is 'The longest interval in days that any page of a host that may be fetched has; null = there are no floors.';

-- Without an index: it is only appended to, read from end to end and truncated.
create table recrawl_internal.fetch_log (
    part    int         not null,
    page_id bigint      not null,
    at      timestamptz not null,
    days    real        not null,
    changed boolean     not null
) partition by list (part);
create table recrawl_internal.fetch_log_0 partition of recrawl_internal.fetch_log for values in (0);
create table recrawl_internal.fetch_log_1 partition of recrawl_internal.fetch_log for values in (1);
create table recrawl_internal.fetch_log_2 partition of recrawl_internal.fetch_log for values in (2);
create table recrawl_internal.fetch_log_3 partition of recrawl_internal.fetch_log for values in (3);
do $$
declare
    thing text;
begin
    foreach thing in array '{fetch_log,fetch_log_0,fetch_log_1,fetch_log_2,fetch_log_3}'::text[] loop
        execute 'comment on table recrawl_internal.' || thing || ' is ''What fetches saw, as far as the setting keep_log asks for it.''';
        execute 'comment on column recrawl_internal.' || thing || '.part is ''Parts take turns; see log_part().''';
        execute 'comment on column recrawl_internal.' || thing || '.page_id is ''The page.''';
        execute 'comment on column recrawl_internal.' || thing || '.at is ''When it was fetched.''';
        execute 'comment on column recrawl_internal.' || thing || '.days is ''Days since the fetch before.''';
        execute 'comment on column recrawl_internal.' || thing || '.changed is ''Whether it had changed.''';
    end loop;
end $$;

-- What the views of the version before are called over: they come anew with more columns in between.
drop view if exists recrawl.page_status, recrawl.host_status;
