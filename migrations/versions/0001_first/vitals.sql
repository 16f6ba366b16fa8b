-- Vitals: one row per minute says what happened and how the crawl stands. Only the job vitals writes these tables.
--
--     pulse (logs.sql), cells, samples ──every minute──▶ vital ──every hour──▶ vital_hour

create table recrawl_internal.vital (
    at            timestamptz primary key,
    fetches       bigint not null default 0,
    changed       bigint not null default 0,
    unchanged     bigint not null default 0,
    first         bigint not null default 0,
    missing       bigint not null default 0,
    failed        bigint not null default 0,
    throttled     bigint not null default 0,
    denied        bigint not null default 0,
    untold        bigint not null default 0,
    retries       bigint not null default 0,
    stale         bigint not null default 0,
    duplicate     bigint not null default 0,
    refused       bigint not null default 0,
    late_1m       bigint not null default 0,
    late_10m      bigint not null default 0,
    late_1h       bigint not null default 0,
    late_6h       bigint not null default 0,
    late_1d       bigint not null default 0,
    late_more     bigint not null default 0,
    late_seconds  float8 not null default 0,
    lost          float8 not null default 0,
    handed_out    bigint not null default 0,
    expired       bigint not null default 0,
    missed        bigint not null default 0,
    asks          bigint not null default 0,
    empty_asks    bigint not null default 0,
    new_pages     bigint not null default 0,
    due           bigint,
    due_crawler   bigint,
    due_gap       bigint,
    due_blocked   bigint,
    new_waiting   bigint,
    leased        bigint,
    pages         bigint,
    hosts         bigint,
    hosts_ready   bigint,
    hosts_blocked bigint,
    hosts_capped  bigint,
    ready_wait    interval,
    inbox_wait    interval,
    fresh         real,
    fresh_error   real,
    covered       real,
    promised      real,
    possible      real,
    unpolite      real,
    budget        float8
);
comment on table recrawl_internal.vital is 'One row per minute: its events, and the state of the crawl at its end.';
comment on column recrawl_internal.vital.at is 'When the minute began.';
comment on column recrawl_internal.vital.fetches is
    'Reported fetches: the sum of changed, unchanged, first, missing, failed, throttled and denied.';
comment on column recrawl_internal.vital.changed is 'Fetches of pages that had changed.';
comment on column recrawl_internal.vital.unchanged is
    'Fetches of pages that had not changed, or without any sign of whether they had.';
comment on column recrawl_internal.vital.first is 'First successful fetches of a page.';
comment on column recrawl_internal.vital.missing is
    'Fetches of pages that were not there: 404, 410 and the like, or moved permanently.';
comment on column recrawl_internal.vital.failed is 'Failed fetches: 5xx, or no answer.';
comment on column recrawl_internal.vital.throttled is 'Fetches that the host refused with 429 or 503.';
comment on column recrawl_internal.vital.denied is 'Fetches that robots.txt forbids.';
comment on column recrawl_internal.vital.untold is
    'Of the unchanged ones: fetches without any sign of whether the page had changed.';
comment on column recrawl_internal.vital.retries is
    'Of all fetches, with any outcome: fetches of a page whose attempt before had failed.';
comment on column recrawl_internal.vital.stale is
    'Reports on a lease that did not hold the page. They are not among the fetches.';
comment on column recrawl_internal.vital.duplicate is 'Reports of a fetch that was reported before.';
comment on column recrawl_internal.vital.refused is 'Reports that were invalid, or of an unknown page.';
comment on column recrawl_internal.vital.late_1m is 'Revisits at most a minute late: from due time to slot.';
comment on column recrawl_internal.vital.late_10m is 'Revisits 1 to 10 minutes late.';
comment on column recrawl_internal.vital.late_1h is 'Revisits 10 minutes to an hour late.';
comment on column recrawl_internal.vital.late_6h is 'Revisits 1 to 6 hours late.';
comment on column recrawl_internal.vital.late_1d is 'Revisits 6 hours to a day late.';
comment on column recrawl_internal.vital.late_more is 'Revisits more than a day late.';
comment on column recrawl_internal.vital.late_seconds is 'Sum over these revisits: seconds late.';
comment on column recrawl_internal.vital.lost is
    'Revisits that did not happen: whole periods that passed before a late one.';
comment on column recrawl_internal.vital.handed_out is 'Pages handed out.';
comment on column recrawl_internal.vital.expired is 'Pages that came back because their lease ended before a report.';
comment on column recrawl_internal.vital.missed is
    'Pages that crawlers released after their slot had passed without a request.';
comment on column recrawl_internal.vital.asks is 'Calls of next_pages while the crawl was not paused.';
comment on column recrawl_internal.vital.empty_asks is 'Calls of next_pages that got nothing.';
comment on column recrawl_internal.vital.new_pages is 'Pages taken in.';
comment on column recrawl_internal.vital.due is 'Revisits that are due, estimated from a sample of the queue.';
comment on column recrawl_internal.vital.due_crawler is
    'Due revisits that wait only for a crawler: their host is free.';
comment on column recrawl_internal.vital.due_gap is
    'Due revisits that wait for the gap of their host, behind other pages of it, or for its page that is leased.';
comment on column recrawl_internal.vital.due_blocked is 'Due revisits whose host is blocked.';
comment on column recrawl_internal.vital.new_waiting is 'Pages that were never handed out, estimated from a sample.';
comment on column recrawl_internal.vital.leased is 'Leased pages.';
comment on column recrawl_internal.vital.pages is 'Pages taken in and not forgotten, at the last count by host.';
comment on column recrawl_internal.vital.hosts is 'Hosts, at the last count.';
comment on column recrawl_internal.vital.hosts_ready is
    'Hosts that are free and have a page to fetch, counted up to 1,000.';
comment on column recrawl_internal.vital.hosts_blocked is 'Blocked hosts, at the last count.';
comment on column recrawl_internal.vital.hosts_capped is
    'Hosts whose gap, not the budget, decides, by the last allocation.';
comment on column recrawl_internal.vital.ready_wait is
    'How long the first free host with a page to fetch has waited for a crawler; null = there is no such host.';
comment on column recrawl_internal.vital.inbox_wait is
    'How long the oldest entry of the inbox has waited; null = the inbox is empty.';
comment on column recrawl_internal.vital.fresh is
    'Share of the value of all pages in the allocation that is estimated to be fresh, from a sample.';
comment on column recrawl_internal.vital.fresh_error is 'Standard error of fresh, because of the sample.';
comment on column recrawl_internal.vital.covered is
    'Share of the value of all pages that was fetched at least once, from a sample.';
comment on column recrawl_internal.vital.promised is
    'The share that the last allocation should keep fresh; null = its objective is not freshness.';
comment on column recrawl_internal.vital.possible is 'The most that this share can be within budget and gaps.';
comment on column recrawl_internal.vital.unpolite is 'The most that this share can be within the budget alone.';
comment on column recrawl_internal.vital.budget is 'Fetches per day in force; null = there is no budget.';

create table recrawl_internal.vital_hour (like recrawl_internal.vital including all);
comment on table recrawl_internal.vital_hour is 'One row per hour: sums and means of its minutes in vital.';
comment on column recrawl_internal.vital_hour.at is 'When the hour began.';

create table recrawl_internal.vitals_state (
    only_row      boolean primary key default true check (only_row),
    handed_out    bigint not null default 0,
    asks          bigint not null default 0,
    leases        bigint not null default 0,
    page_id       bigint not null default 0,
    hosts_at      timestamptz,
    pages         bigint,
    hosts         bigint,
    hosts_blocked bigint,
    still_since   timestamptz
);
insert into recrawl_internal.vitals_state default values;
comment on table recrawl_internal.vitals_state is
    'Memory of the job vitals from one minute to the next: the counts so far, and its last look at all hosts.';
comment on column recrawl_internal.vitals_state.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.vitals_state.handed_out is 'The value of the sequence handed_out_count.';
comment on column recrawl_internal.vitals_state.asks is 'The value of the sequence ask_count.';
comment on column recrawl_internal.vitals_state.leases is 'The value of the sequence lease_id.';
comment on column recrawl_internal.vitals_state.page_id is 'The value of the sequence page_id.';
comment on column recrawl_internal.vitals_state.hosts_at is 'When it last looked at all hosts.';
comment on column recrawl_internal.vitals_state.pages is 'Their pages then.';
comment on column recrawl_internal.vitals_state.hosts is 'The number of hosts then.';
comment on column recrawl_internal.vitals_state.hosts_blocked is 'The number of blocked hosts then.';
comment on column recrawl_internal.vitals_state.still_since is
    'Since when nothing is reported although hosts are free; null = the crawl goes on.';

create table recrawl_internal.late_host (
    host_id    bigint primary key,
    due        bigint      not null,
    oldest_due timestamptz not null,
    as_of      timestamptz not null
);
comment on table recrawl_internal.late_host is 'The hosts whose revisits have been due longest.';
comment on column recrawl_internal.late_host.host_id is 'The host.';
comment on column recrawl_internal.late_host.due is 'Its due revisits, counted up to 10,000.';
comment on column recrawl_internal.late_host.oldest_due is 'The oldest due time of these revisits.';
comment on column recrawl_internal.late_host.as_of is 'When this was found.';
