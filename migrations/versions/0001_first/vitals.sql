-- Vitals: one row per minute says what happened and how the crawl stands. The job vitals writes these tables, and the
-- job retention deletes old rows.
--
--     pulse (logs.sql), counters (cells.sql), samples of the queue ──every minute──▶ vital ──every hour──▶ vital_hour

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
    change_unknown        bigint not null default 0,
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
    skipped       float8 not null default 0,
    handed_out    bigint not null default 0,
    expired       bigint not null default 0,
    missed        bigint not null default 0,
    calls         bigint not null default 0,
    empty_calls   bigint not null default 0,
    pages_added   bigint not null default 0,
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
    expected      real,
    limit_with_gaps      real,
    limit_without_gaps      real,
    budget        float8
);
comment on table recrawl_internal.vital is
    'One row per minute: what happened in the minute, and the state of the crawl at its end. A revisit is a fetch of '
    'a page that was handed out before.';
comment on column recrawl_internal.vital.at is 'The beginning of the minute.';
comment on column recrawl_internal.vital.fetches is
    'Reported fetches: the sum of changed, unchanged, first, missing, failed, throttled and denied.';
comment on column recrawl_internal.vital.changed is 'Fetches of pages that had changed.';
comment on column recrawl_internal.vital.unchanged is
    'Fetches of pages that had not changed, and fetches that did not show whether the page had changed.';
comment on column recrawl_internal.vital.first is 'First successful fetches of a page.';
comment on column recrawl_internal.vital.missing is
    'Fetches of pages that do not exist: 404, 410 and other 4xx, or moved permanently.';
comment on column recrawl_internal.vital.failed is 'Failed fetches: 5xx, or no answer.';
comment on column recrawl_internal.vital.throttled is 'Fetches that the host refused with 429 or 503.';
comment on column recrawl_internal.vital.denied is 'Fetches that robots.txt forbids.';
comment on column recrawl_internal.vital.change_unknown is
    'Fetches that did not show whether the page had changed. They are included in unchanged.';
comment on column recrawl_internal.vital.retries is
    'Fetches, with any outcome, of pages whose last attempt had failed.';
comment on column recrawl_internal.vital.stale is
    'Reports whose lease no longer held the page. They are not included in fetches.';
comment on column recrawl_internal.vital.duplicate is 'Reports of a fetch that had been reported before.';
comment on column recrawl_internal.vital.refused is 'Reports that were invalid or about an unknown page.';
comment on column recrawl_internal.vital.late_1m is 'Revisits whose slot was at most 1 minute after their due time.';
comment on column recrawl_internal.vital.late_10m is 'Revisits that were 1 to 10 minutes late.';
comment on column recrawl_internal.vital.late_1h is 'Revisits that were 10 to 60 minutes late.';
comment on column recrawl_internal.vital.late_6h is 'Revisits that were 1 to 6 hours late.';
comment on column recrawl_internal.vital.late_1d is 'Revisits that were 6 to 24 hours late.';
comment on column recrawl_internal.vital.late_more is 'Revisits that were more than 24 hours late.';
comment on column recrawl_internal.vital.late_seconds is
    'The sum of the delays of all revisits in seconds.';
comment on column recrawl_internal.vital.skipped is
    'Skipped fetches. Example: a page with an interval of one day is fetched 2.5 days late, so 2 fetches were '
    'skipped.';
comment on column recrawl_internal.vital.handed_out is 'Pages that next_pages handed out.';
comment on column recrawl_internal.vital.expired is 'Pages whose lease ended before a report.';
comment on column recrawl_internal.vital.missed is
    'Pages that crawlers released without a request, after the slot had passed.';
comment on column recrawl_internal.vital.calls is 'Calls of next_pages while the crawl was not paused.';
comment on column recrawl_internal.vital.empty_calls is 'Calls of next_pages that returned no page.';
comment on column recrawl_internal.vital.pages_added is 'Pages that were added to the crawl.';
comment on column recrawl_internal.vital.due is 'Revisits that are due, estimated from a sample.';
comment on column recrawl_internal.vital.due_crawler is
    'Due revisits that wait only for a crawler, because their host is ready.';
comment on column recrawl_internal.vital.due_gap is
    'Due revisits that wait for their host: for its gap, for other pages before them, or for a leased page if the '
    'host is one_at_a_time.';
comment on column recrawl_internal.vital.due_blocked is 'Due revisits whose host is blocked.';
comment on column recrawl_internal.vital.new_waiting is 'Pages that were never handed out, estimated from a sample.';
comment on column recrawl_internal.vital.leased is 'Leased pages.';
comment on column recrawl_internal.vital.pages is 'Pages that were added and not kept_out, at the last count.';
comment on column recrawl_internal.vital.hosts is 'The number of hosts, at the last count.';
comment on column recrawl_internal.vital.hosts_ready is
    'Ready hosts: a request may start now, and they have a page to fetch. Counted up to 1,000.';
comment on column recrawl_internal.vital.hosts_blocked is 'The number of blocked hosts, at the last count.';
comment on column recrawl_internal.vital.hosts_capped is
    'The number of hosts whose fetches are limited by their gap, and not by the budget, in the last allocation.';
comment on column recrawl_internal.vital.ready_wait is
    'The longest time that a ready host has waited for a crawler. null = no host is ready.';
comment on column recrawl_internal.vital.inbox_wait is
    'How long the oldest entry of the inbox has waited for upkeep. null = the inbox is empty.';
comment on column recrawl_internal.vital.fresh is
    'The share of the value of all pages in the allocation that is fresh, 0 to 1, estimated from a sample.';
comment on column recrawl_internal.vital.fresh_error is 'The standard error of fresh that comes from the sample.';
comment on column recrawl_internal.vital.covered is
    'The share of the value of all pages that was fetched at least once, 0 to 1, from a sample.';
comment on column recrawl_internal.vital.expected is
    'The share of the value that the last allocation expects to be fresh; null = the objective is not freshness.';
comment on column recrawl_internal.vital.limit_with_gaps is
    'The highest share that can be fresh with this budget and with the gaps of hosts.';
comment on column recrawl_internal.vital.limit_without_gaps is
    'The highest share that could be fresh with this budget if hosts had no gaps.';
comment on column recrawl_internal.vital.budget is 'The budget in fetches per day; null = there is no budget.';

create table recrawl_internal.vital_hour (like recrawl_internal.vital including all);
comment on table recrawl_internal.vital_hour is
    'One row per hour, computed from the rows of vital: sums of counts, and means of states.';
comment on column recrawl_internal.vital_hour.at is 'The beginning of the hour.';

create table recrawl_internal.vitals_state (
    only_row      boolean primary key default true check (only_row),
    handed_out    bigint not null default 0,
    calls         bigint not null default 0,
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
    'The numbers that the job vitals keeps from one minute to the next: counters, and its last count of hosts. The '
    'table has one row.';
comment on column recrawl_internal.vitals_state.only_row is 'Always true, so that the table has only one row.';
comment on column recrawl_internal.vitals_state.handed_out is 'The value of the sequence handed_out_count.';
comment on column recrawl_internal.vitals_state.calls is 'The value of the sequence ask_count.';
comment on column recrawl_internal.vitals_state.leases is 'The value of the sequence lease_id.';
comment on column recrawl_internal.vitals_state.page_id is 'The value of the sequence page_id.';
comment on column recrawl_internal.vitals_state.hosts_at is 'The time when the job last counted the hosts.';
comment on column recrawl_internal.vitals_state.pages is 'The number of pages at that time.';
comment on column recrawl_internal.vitals_state.hosts is 'The number of hosts at that time.';
comment on column recrawl_internal.vitals_state.hosts_blocked is 'The number of blocked hosts at that time.';
comment on column recrawl_internal.vitals_state.still_since is
    'No report has come since this time, although hosts are ready; null = reports come.';

create table recrawl_internal.late_host (
    host_id    bigint primary key,
    due        bigint      not null,
    oldest_due timestamptz not null,
    as_of      timestamptz not null
);
comment on table recrawl_internal.late_host is 'The hosts whose late revisits have waited longest.';
comment on column recrawl_internal.late_host.host_id is 'The host.';
comment on column recrawl_internal.late_host.due is 'The number of due revisits of the host, counted up to 10,000.';
comment on column recrawl_internal.late_host.oldest_due is 'The oldest due time of these revisits.';
comment on column recrawl_internal.late_host.as_of is 'The time when this was found.';
