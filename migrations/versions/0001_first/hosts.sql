-- Hosts. The row of a host is hot: next_pages updates it each time, and a change of the host's pages in the queue needs
-- its lock.
--
-- A host can be in two queues of hosts at once. next_pages looks at the hosts of both. The setting discovery divides
-- the fetches between the two.
--
--     queue of revisits                               queue of new pages
--     ready_at      when to visit it for a due page   new_class     class of value of its best new page
--        │                                            new_ready_at  when to visit it for a new page
--        │ index host_ready                              │ index host_new: class first, then time
--        ▼                                               ▼
--     queue, from head_due on                         new_page, from (head_new_rank, head_new_id) on
--        └───────────── new_credit: new pages before the next due revisit ─────────────┘
--
--     its slots       last_start_by + gap = the next slot. gap: null = the longer of default_gap and crawl_delay
--     its lease       busy_until, busy_lease: the leased page of a host that is one_at_a_time
--     its block       blocked_until, blocked_reason; strikes = blocks in a row; failures since failures_since
--     counters        handed_out, pages
--
-- ready_at or new_ready_at is `infinity` if the host has no page for that queue.
-- Example: a host with a gap of 1 s had a request at 12:00:00. Its next page was due at 11:50, so ready_at is 12:00:01.
-- It has no new page, so new_class is null and new_ready_at is infinity.

create sequence recrawl_internal.host_id;
comment on sequence recrawl_internal.host_id is 'Ids of hosts.';

-- Columns of fixed width come first. Keep the number of indexes small: ready_at is indexed and changes at each pop, so
-- each pop writes every index.
create table recrawl_internal.host (
    host_id        bigint      not null,
    ready_at       timestamptz not null default 'infinity',
    new_ready_at   timestamptz not null default 'infinity',
    last_start_by  timestamptz not null default '-infinity',
    head_due       timestamptz not null default 'infinity',
    head_new_id    bigint,
    handed_out     bigint      not null default 0,
    failures_since bigint      not null default 0,
    head_new_rank  real,
    new_credit     real        not null default 1,
    pages          int         not null default 0,
    failures       int         not null default 0,
    strikes        smallint    not null default 0,
    new_class      smallint,
    one_at_a_time  boolean     not null default false,
    gap            interval,
    crawl_delay    interval,
    busy_until     timestamptz,
    busy_lease     bigint,
    blocked_until  timestamptz,
    name           text        not null,
    blocked_reason text
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0
);
-- Not unique: a unique index would read every dead version of the row at each pop while an old snapshot is open.
create index host_by_id on recrawl_internal.host (host_id);
create index host_ready on recrawl_internal.host (ready_at);
create index host_new on recrawl_internal.host (new_class, new_ready_at) where new_class is not null;
-- A table without a key needs this, or updates fail as soon as somebody publishes all tables.
alter table recrawl_internal.host replica identity full;
comment on table recrawl_internal.host is
    'A host: the unit of politeness. The row says when the next request may start, and where the queue of the host '
    'begins.';
comment on column recrawl_internal.host.host_id is 'Id from the sequence host_id.';
comment on column recrawl_internal.host.ready_at is
    'The place of the host in the queue of revisits: the time when next_pages should look at the host for a due page. '
    'It is the latest of five times: next slot, first due page, end of the block, busy_until, time of writing. If '
    'ready_at has already passed and a new page gets the slot, ready_at stays as it is.';
comment on column recrawl_internal.host.new_ready_at is
    'The place of the host in the queue of new pages, within its class. It is computed like ready_at, without the '
    'due page.';
comment on column recrawl_internal.host.last_start_by is
    'The last request to the host started at this time or earlier. It is start_by of the last slot, or the start of a '
    'request that began after its start_by. The next slot is one gap later.';
comment on column recrawl_internal.host.head_due is
    'No page of the host in the table queue is due before this time. Index scans start here, so that they skip dead '
    'entries.';
comment on column recrawl_internal.host.head_new_id is
    'The new page of the host that is handed out next. Its rank is head_new_rank. No new page comes before it. null = '
    'there is no new page.';
comment on column recrawl_internal.host.handed_out is
    'How often a page of the host was handed out. Fetches that failed count too.';
comment on column recrawl_internal.host.failures_since is
    'The value of handed_out at the time when failures was last set to 0.';
comment on column recrawl_internal.host.head_new_rank is 'The rank of the page head_new_id.';
comment on column recrawl_internal.host.new_credit is
    'The number of new pages of the host that may be handed out before its next revisit. It counts only while '
    'revisits are due.';
comment on column recrawl_internal.host.pages is 'Pages of the host that were taken into the queue and not kept_out.';
comment on column recrawl_internal.host.failures is 'Failed requests since failures_since.';
comment on column recrawl_internal.host.strikes is
    'Blocks in a row after 429, 503 or failures. Each of them doubles the next block.';
comment on column recrawl_internal.host.new_class is
    'The class of the host in the queue of new pages, see class_in_line(). null = the host has no new page.';
comment on column recrawl_internal.host.one_at_a_time is
    'True if the host gives its next page only after the last one was reported or released, or its lease ended.';
comment on column recrawl_internal.host.gap is
    'The least time between two requests, set by set_host. null = the longer of default_gap and crawl_delay.';
comment on column recrawl_internal.host.crawl_delay is
    'The delay that the robots.txt of the host asks for, at most 60 seconds.';
comment on column recrawl_internal.host.busy_until is
    'The end of the lease of the host''s page, if the host is one_at_a_time and a page is leased.';
comment on column recrawl_internal.host.busy_lease is
    'The lease of that page. Reports and releases on other leases do not change busy_until.';
comment on column recrawl_internal.host.blocked_until is
    'The end of the block. No page of the host is handed out before.';
comment on column recrawl_internal.host.name is
    'The name of the host in host_name. Stored here too, so that next_pages need not look it up.';
comment on column recrawl_internal.host.blocked_reason is 'The reason of the block.';

create table recrawl_internal.host_name (
    name      text   primary key,
    host_id   bigint not null,
    max_pages int
);
create index host_name_of_host on recrawl_internal.host_name (host_id);
comment on table recrawl_internal.host_name is
    'The names of hosts, and the maximum number of their pages. Several names may share one host. The table is '
    'separate from host. So next_pages, which updates rows of host, does not update the indexes of names.';
comment on column recrawl_internal.host_name.name is
    'Host name or address in lower case, without port. http, https and all ports of a name share one gap.';
comment on column recrawl_internal.host_name.host_id is
    'The host that the name belongs to: its own host, or a host that it shares with other names.';
comment on column recrawl_internal.host_name.max_pages is
    'The host takes in no more pages than this; null = the setting max_pages_per_host applies. It is the same for all '
    'names of a host.';

-- Separate from host, whose rows are locked and rewritten by every pop.
create table recrawl_internal.host_terms (
    host_id       bigint  primary key,
    price         float8,
    ties          float8,
    min_frequency float8,
    pins_kept     float8,
    frequency     float8,
    prior_changes float8,
    prior_days    float8,
    is_capped     boolean,
    objective     text
) with (fillfactor = 80, autovacuum_vacuum_cost_delay = 0);
-- The prior before the first estimate: one change in five days on average, with a wide spread.
insert into recrawl_internal.host_terms (host_id, prior_changes, prior_days) values (0, 0.7, 3.5);
comment on table recrawl_internal.host_terms is
    'The terms (price, minimum frequency and so on) that decide how often the pages of a host are fetched. Only jobs '
    'write them.';
comment on column recrawl_internal.host_terms.host_id is
    'The host. 0 = the common terms, for all hosts without terms of their own.';
comment on column recrawl_internal.host_terms.price is
    'The smallest gain for which a page of the host gets one more fetch per day. null = the common price applies. '
    'null in the common terms = there was no allocation yet.';
comment on column recrawl_internal.host_terms.ties is
    'If the gain of a page is exactly the price, its frequency is its rate times this number. There are such pages if '
    'the budget or the gap is not enough for all pages of one gain. null = there are no such pages.';
comment on column recrawl_internal.host_terms.min_frequency is
    'Fetches per day that each page of the host gets at least. null = the common one applies.';
comment on column recrawl_internal.host_terms.pins_kept is
    'The share of the fetches for pinned intervals that the pages of the host get. null = the common share applies. '
    'null in the common terms = all of them.';
comment on column recrawl_internal.host_terms.frequency is
    'Fetches per day that the last allocation gave to all pages of the host together.';
comment on column recrawl_internal.host_terms.prior_changes is
    'The guess for a new page of the host: it starts as if recrawl had seen prior_changes changes in prior_days days. '
    'The two numbers stand for a Gamma distribution of rates with the mean prior_changes / prior_days.';
comment on column recrawl_internal.host_terms.prior_days is 'The number of days for prior_changes.';
comment on column recrawl_internal.host_terms.is_capped is
    'True if the gap, and not the budget, limits the fetches of the host. null = the host took no part in the last '
    'allocation.';
comment on column recrawl_internal.host_terms.objective is
    'The objective that the prices belong to. Only the common terms have it.';

create table recrawl_internal.robots (
    site        text        primary key,
    host_id     bigint      not null,
    good_until  timestamptz not null,
    crawl_delay interval,
    status      smallint    not null,
    rules       text
);
create index robots_of_host on recrawl_internal.robots (host_id);
comment on table recrawl_internal.robots is
    'The robots.txt of each site (scheme, host and port). All crawlers share it.';
comment on column recrawl_internal.robots.site is 'Scheme, host and port, spelled as in a canonical URL.';
comment on column recrawl_internal.robots.host_id is 'The host of the site. All sites of a host share its gap.';
comment on column recrawl_internal.robots.good_until is 'After this time robots.txt should be fetched again.';
comment on column recrawl_internal.robots.crawl_delay is
    'The delay that robots.txt asks for. The host uses the longest delay of its sites.';
comment on column recrawl_internal.robots.status is 'HTTP status of the last answer.';
comment on column recrawl_internal.robots.rules is
    'The text of robots.txt; null = the site has no robots.txt, so everything is allowed.';
