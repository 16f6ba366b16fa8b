-- Everything that lasts: row types, tables, sequences. Functions and views stand in sql/, which is replayed after this.
--
--     what people see · settings · hosts · pages · the queue · the graph · jobs · vitals · parts of the logs ·
--     inside a report · sql/
--
-- Tables by temperature. Hot and narrow, one update a pop: host, queue, lease. One HOT update a report: page.
-- Cold: host_name, the URLs in page. Written in batches: host_terms, page_score. Only appended to: fetch_log,
-- pulse, vital, event, job, allocation, opic.

create schema recrawl;
comment on schema recrawl is 'The crawl scheduler: the functions and views people use.';
comment on schema recrawl_internal is
    'The crawl scheduler''s tables, helpers and explicit-time twins: no one''s business but recrawl''s.';

-- ------------------------------------------------------------------------------------------------- what people see

create type recrawl.page_to_fetch as (
    page_id       bigint,
    url           text,
    host          text,
    fetch_at      timestamptz,
    start_by      timestamptz,
    wait          interval,
    lease_id      bigint,
    lease_until   timestamptz,
    attempt       int,
    value         real,
    etag          text,
    last_modified timestamptz,
    content_hash  text,
    meta          jsonb
);
comment on type recrawl.page_to_fetch is
    'One row of next_pages: request url between fetch_at and start_by (wait is fetch_at as an interval from now), '
    'then report page_id with lease_id before lease_until.';

create type recrawl.report_result as (
    ord           int,
    page_id       bigint,
    code          text,
    detail        text,
    next_fetch_at timestamptz,
    held_until    timestamptz
);
comment on type recrawl.report_result is
    'One row per reported element, in order: code is ok, duplicate, stale_lease, unknown_page or invalid; held_until '
    'says that the page''s host is held until then, so nothing of it may be requested.';

create type recrawl.held_page as (
    lease_id   bigint,
    page_id    bigint,
    host       text,
    held_until timestamptz
);
comment on type recrawl.held_page is 'A leased page that must not be requested before held_until: release it.';

create type recrawl.added_page as (
    ord     int,
    url     text,
    page_id bigint,
    code    text,
    detail  text
);
comment on type recrawl.added_page is 'One row per added URL, in order: code is new, known, excluded or invalid.';

create type recrawl.scored_page as (
    page_id   bigint,
    url       text,
    hub       real,
    authority real,
    relevance real
);
comment on type recrawl.scored_page is
    'A page and what its place in the graph says of it; hub and authority are 1 on average, null before the first '
    'run of opic.';

create type recrawl.explanation as (
    topic  text,
    code   text,
    says   text,
    mend   text,
    detail jsonb
);
comment on type recrawl.explanation is
    'One row of explain_page: what is so of a page, in a code and in words; mend is SQL or a command that changes it, '
    'null where nothing needs to be done, or can be; detail has the figures, times in UTC.';

-- ------------------------------------------------------------------------------------------------------- settings

-- One row. A column's comment is its unit and its meaning. The name of its constraint is the error; where it ends with
-- «must be one of», the names that the constraint allows follow. Intervals are hours and less: days and months are as
-- long as the session's time zone and the month say, and ten years are 3,600 days as an interval, 3,652.5 in seconds.
create table recrawl_internal.setting (
    only_row           boolean  primary key default true check (only_row),
    paused             boolean  not null default false,
    default_gap        interval not null default '1 second'
                       constraint "default_gap must lie between 1 millisecond and 30 days"
                       check (default_gap between '1 millisecond' and '30 days'),
    start_within       real     not null default 0.1
                       constraint "start_within must lie between 0 and 1"
                       check (start_within between 0 and 1),
    max_ahead          interval not null default '1 minute'
                       constraint "max_ahead must lie between 0 and 10 minutes"
                       check (max_ahead between '0' and '10 minutes'),
    discovery          real     not null default 0.5
                       constraint "discovery must lie between 0 and 1"
                       check (discovery between 0 and 1),
    breadth            real     not null default 0.02
                       constraint "breadth must lie between 0 and 1"
                       check (breadth between 0 and 1),
    frequency          real     not null default 1
                       constraint "frequency must lie between 0.003 and 86400"
                       check (frequency between 0.003 and 86400),
    max_attempts       int      not null default 5
                       constraint "max_attempts must be positive"
                       check (max_attempts > 0),
    max_depth          int
                       constraint "max_depth must be 0 or more links, or none"
                       check (max_depth >= 0),
    max_pages          int
                       constraint "max_pages must be 0 or more pages, or none"
                       check (max_pages >= 0),
    budget             float8
                       constraint "budget must lie between 1e-6 and 1e12 fetches per day, or none"
                       check (budget between 1e-6 and 1e12),
    budget_is_measured boolean  not null default false,
    objective          text     not null default 'freshness'
                       constraint "objective must be one of"
                       check (objective in
                              ('freshness', 'new_content', 'poisson_freshness', 'harmonic', 'delay', 'age')),
    exploration        real     not null default 0.05
                       constraint "exploration must lie between 0 and 0.5"
                       check (exploration between 0 and 0.5),
    longest_interval   interval default '1440 hours'
                       constraint "longest_interval must lie between 1 minute and 10 years"
                       check (longest_interval between '1 minute' and '87660 hours'),
    shortest_interval  interval default '5 minutes'
                       constraint "shortest_interval must lie between 1 second and 30 days"
                       check (shortest_interval between '1 second' and '30 days'),
    keep_log           interval
                       constraint "keep_log must lie between 1 minute and 10 years"
                       check (keep_log between '1 minute' and '87660 hours'),
    keep_vitals        interval not null default '48 hours'
                       constraint "keep_vitals must lie between 3 hours and 400 days"
                       check (keep_vitals between '3 hours' and '400 days'),
    keep_history       interval not null default '9600 hours'
                       constraint "keep_history must lie between 1 day and 100 years"
                       check (keep_history between '1 day' and '100 years'),
    rates_every        interval default '6 hours'
                       constraint "rates_every must lie between 10 seconds and 10 years"
                       check (rates_every between '10 seconds' and '87660 hours'),
    opic_every         interval default '6 hours'
                       constraint "opic_every must lie between 10 seconds and 10 years"
                       check (opic_every between '10 seconds' and '87660 hours'),
    allocate_every     interval default '1 hour'
                       constraint "allocate_every must lie between 10 seconds and 10 years"
                       check (allocate_every between '10 seconds' and '87660 hours'),
    memory             real     not null default 500
                       constraint "memory must lie between 0 and 1e6 megabytes"
                       check (memory between 0 and 1e6),
    authority_weight   real     not null default 1
                       constraint "authority_weight must lie between 0 and 1000"
                       check (authority_weight between 0 and 1000),
    hub_weight         real     not null default 0
                       constraint "hub_weight must lie between 0 and 1000"
                       check (hub_weight between 0 and 1000),
    importance_weight  real     not null default 0
                       constraint "importance_weight must lie between 0 and 1000"
                       check (importance_weight between 0 and 1000),
    relevance_weight   real     not null default 0
                       constraint "relevance_weight must lie between 0 and 1000"
                       check (relevance_weight between 0 and 1000),
    constraint "longest_interval must not be shorter than shortest_interval"
    check (longest_interval >= shortest_interval)
);
insert into recrawl_internal.setting default values;
comment on table recrawl_internal.setting is
    'The one row of settings, a typed column each; a column''s comment is its unit and its meaning, a '
    'constraint''s name its error.';
comment on column recrawl_internal.setting.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.setting.paused is
    'boolean: nothing is handed out while true; pause() and resume() set it.';
comment on column recrawl_internal.setting.default_gap is
    'interval: least time between two requests to a host that has no gap of its own; a shorter one counts as each '
    'host comes round.';
comment on column recrawl_internal.setting.start_within is
    'share: of a host''s gap, and at most 2 seconds, that a request may start late. Slots are the gap and this apart.';
comment on column recrawl_internal.setting.max_ahead is 'interval: the longest look-ahead next_pages accepts.';
comment on column recrawl_internal.setting.discovery is
    'share: of all fetches that go to new pages while revisits wait too.';
comment on column recrawl_internal.setting.breadth is
    'share: of the calls for new pages that go round all classes of value, so that low ones do not wait for '
    'ever.';
comment on column recrawl_internal.setting.frequency is
    'fetches per day: of a page before the first allocation, and on average where there is no budget.';
comment on column recrawl_internal.setting.max_attempts is
    'attempts: in a row that fail before a page is given up and rechecked rarely.';
comment on column recrawl_internal.setting.max_depth is
    'links: a page further from where the crawl began is not taken in; none = no limit.';
comment on column recrawl_internal.setting.max_pages is
    'pages: a host of this many takes in no more unless set_host says otherwise; none = no limit.';
comment on column recrawl_internal.setting.budget is
    'fetches per day: of new pages and revisits together; none = no limit to new pages, and as many revisits '
    'as frequency times the pages that were fetched before; measured = as many as crawlers are seen to do, '
    'raised while they ask and get less than they want, lowered while pages wait for them.';
comment on column recrawl_internal.setting.budget_is_measured is
    'boolean: whether budget is what crawlers are seen to do; set_setting(''budget'', ''measured'') sets it.';
comment on column recrawl_internal.setting.objective is 'name: what the next allocation maximises';
comment on column recrawl_internal.setting.exploration is
    'share: of the budget that keeps every page fetched now and then, however little that promises.';
comment on column recrawl_internal.setting.longest_interval is
    'interval: no page waits longer to be fetched, where half of the budget and of its host''s slots suffice; '
    'none = no limit.';
comment on column recrawl_internal.setting.shortest_interval is
    'interval: no page is fetched more often, nor two fetches of one scheduled closer; none = no limit.';
comment on column recrawl_internal.setting.keep_log is
    'interval: how long observations are kept in the fetch log, for recrawl audit; none = no log.';
comment on column recrawl_internal.setting.keep_vitals is
    'interval: how long the view vitals keeps its rows, one a minute.';
comment on column recrawl_internal.setting.keep_history is
    'interval: how long vitals_by_hour, events and the runs of jobs are kept; the last runs always are.';
comment on column recrawl_internal.setting.rates_every is
    'interval: a worker learns so often how often pages change on each host; none = never.';
comment on column recrawl_internal.setting.opic_every is
    'interval: a worker scores the link graph so often, and also when 5 % of it is news; none = never.';
comment on column recrawl_internal.setting.allocate_every is
    'interval: a worker divides the budget so often, and also when what it depends on moved by 5 %; '
    'none = never.';
comment on column recrawl_internal.setting.memory is
    'megabytes: that a worker keeps of the graph between two runs of opic, so as to read only the news; '
    'a larger graph is read anew each time.';
comment on column recrawl_internal.setting.authority_weight is
    'weight: of a page''s authority in its value, from the next run of opic on; with all four at 0, values stay '
    'as they are.';
comment on column recrawl_internal.setting.hub_weight is 'weight: of a page''s hub score in its value.';
comment on column recrawl_internal.setting.importance_weight is
    'weight: of a page''s importance (plain OPIC, near PageRank) in its value; it is worked out only if this is '
    'not 0.';
comment on column recrawl_internal.setting.relevance_weight is
    'weight: of a page''s relevance in its value, beyond what it does for authority.';

-- ---------------------------------------------------------------------------------------------------------- hosts

create sequence recrawl_internal.host_id;

-- Hot: one update per pop, and ready_at is indexed, so every further index would be written at each pop too.
create table recrawl_internal.host (
    host_id         bigint      not null,
    ready_at        timestamptz not null default 'infinity',
    new_ready_at    timestamptz not null default 'infinity',
    last_start_by   timestamptz not null default '-infinity',
    head_due        timestamptz not null default 'infinity',
    head_new_id     bigint,
    fetches         bigint      not null default 0,
    failures_since  bigint      not null default 0,
    head_new_rank   real,
    new_credit      real        not null default 1,
    pages           int         not null default 0,
    failures        int         not null default 0,
    strikes         smallint    not null default 0,
    new_class       smallint,
    one_at_a_time   boolean     not null default false,
    name            text        not null,
    gap             interval,
    crawl_delay     interval,
    busy_until      timestamptz,
    busy_lease      bigint,
    blocked_until   timestamptz,
    blocked_reason  text
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0
);
-- Not unique: checking that would read every dead version of the row, at each pop, while a snapshot is held.
create index host_by_id on recrawl_internal.host (host_id);
create index host_ready on recrawl_internal.host (ready_at);
create index host_new on recrawl_internal.host (new_class, new_ready_at) where new_class is not null;
comment on table recrawl_internal.host is
    'The unit of politeness: when it may be asked next, and where its queue begins. Rows are locked by whoever '
    'changes its queue.';
comment on column recrawl_internal.host.host_id is 'From the sequence host_id.';
comment on column recrawl_internal.host.ready_at is
    'Its place in the line of revisits, when next_pages should look at them: greatest of its next slot, its '
    'first due page, its block and the time of writing. A place that has come stays, whatever the other line '
    'takes.';
comment on column recrawl_internal.host.new_ready_at is
    'Its place in the line of new pages, among those of its class: the same, without a due page.';
comment on column recrawl_internal.host.last_start_by is
    'The last request to it starts no later: start_by of its last slot, or when it began if that was later. The next '
    'slot is a gap after it.';
comment on column recrawl_internal.host.head_due is
    'Lower bound of the due times in the host''s queue; index scans start here, past dead entries.';
comment on column recrawl_internal.host.head_new_id is
    'With head_new_rank: lower bound of the host''s new pages in order of handing out; null = it has none.';
comment on column recrawl_internal.host.fetches is 'Pages handed out so far.';
comment on column recrawl_internal.host.failures_since is 'What fetches was when failures were last counted from zero.';
comment on column recrawl_internal.host.head_new_rank is 'See head_new_id.';
comment on column recrawl_internal.host.new_class is
    'Its class in the line of new pages, see class_in_line(); null = it has none.';
comment on column recrawl_internal.host.new_credit is
    'While revisits are due: how many new pages it may give before the next of them.';
comment on column recrawl_internal.host.pages is 'Pages of the host taken into the queue and not forgotten.';
comment on column recrawl_internal.host.failures is 'Failed fetches since failures_since.';
comment on column recrawl_internal.host.strikes is
    'Blocks in a row that the host earned by 429, 503 or failing; each doubles the next.';
comment on column recrawl_internal.host.one_at_a_time is 'Not handed out again before its page is reported.';
comment on column recrawl_internal.host.name is 'Copy of host_name.name, here so that a pop need not look it up.';
comment on column recrawl_internal.host.gap is
    'Set by the operator; null = the greater of default_gap and crawl_delay.';
comment on column recrawl_internal.host.crawl_delay is 'What the host asked for in its robots.txt, clamped.';
comment on column recrawl_internal.host.busy_until is 'A one_at_a_time host''s page is out until then.';
comment on column recrawl_internal.host.busy_lease is 'The lease it is out on: no other keeps or ends busy_until.';
comment on column recrawl_internal.host.blocked_until is 'No page is handed out before.';
comment on column recrawl_internal.host.blocked_reason is 'Why it is blocked.';

create table recrawl_internal.host_name (
    name      text   primary key,
    host_id   bigint not null,
    max_pages int
);
comment on table recrawl_internal.host_name is
    'Identity of hosts and what they may take in, apart from the hot rows so that no pop updates its index.';
comment on column recrawl_internal.host_name.name is
    'Lower-case host name or address, without port: http, https and every port share one gap.';
comment on column recrawl_internal.host_name.host_id is 'The host.';
comment on column recrawl_internal.host_name.max_pages is
    'Takes in no more pages than this; null = the setting max_pages.';

-- Apart from host, whose rows are locked and rewritten by every pop.
create table recrawl_internal.host_terms (
    host_id       bigint primary key,
    price         float8,
    ties          float8,
    floor         float8,
    is_capped     boolean,
    frequency     float8,
    objective     text,
    prior_changes float8,
    prior_days    float8
) with (fillfactor = 80, autovacuum_vacuum_cost_delay = 0);
-- Before the first estimate: a change in five days on average, within a wide range.
insert into recrawl_internal.host_terms (host_id, prior_changes, prior_days) values (0, 0.7, 3.5);
comment on table recrawl_internal.host_terms is
    'The terms on which a host''s pages are scheduled. Written by jobs alone.';
comment on column recrawl_internal.host_terms.host_id is
    'The host; 0 = the common terms, of all hosts that have none of their own.';
comment on column recrawl_internal.host_terms.price is
    'What the next fetch of a page must earn per day; null = the common price, which is null before the first '
    'allocation.';
comment on column recrawl_internal.host_terms.ties is
    'Fetches per change of pages that earn exactly the price, where the budget or the gap runs out among equals; '
    'null = there are none.';
comment on column recrawl_internal.host_terms.floor is
    'Fetches per day that each of its pages gets whatever it earns; null = the common floor.';
comment on column recrawl_internal.host_terms.is_capped is
    'Its gap, not the budget, decides its price; null = it took no part.';
comment on column recrawl_internal.host_terms.frequency is 'Fetches per day that its pages were given in all.';
comment on column recrawl_internal.host_terms.objective is 'What the prices are prices of; in the common row, for all.';
comment on column recrawl_internal.host_terms.prior_changes is
    'With prior_days: the Gamma distribution of change rates that its new pages start from.';
comment on column recrawl_internal.host_terms.prior_days is 'See prior_changes.';

-- ---------------------------------------------------------------------------------------------------------- pages

create sequence recrawl_internal.page_id;

-- Updated at report, HOT only: no index on a column that a report changes. Of fixed width first: they are read most.
create table recrawl_internal.page (
    page_id          bigint      primary key,
    key              uuid        not null unique,
    host_id          bigint      not null,
    due_at           timestamptz,
    fetched_at       timestamptz,
    reported_at      timestamptz,
    last_lease       bigint,
    stale_lease      bigint,
    moved_to         bigint,
    value            real        not null default 1,
    pinned_value     real,
    frequency        real,
    pinned_rate      real,
    seen_changes     real        not null default 0,
    seen_days        real        not null default 0,
    relevance        real,
    pinned_relevance real,
    fetches          int         not null default 0,
    changes          int         not null default 0,
    attempts         smallint    not null default 0,
    depth            smallint    not null default 0,
    last_status      smallint,
    state            text        not null default 'live'
                     constraint "state must be one of"
                     check (state in ('live', 'gone', 'moved', 'excluded', 'forgotten')),
    url              text        not null,
    etag             text,
    last_modified    timestamptz,
    content_hash     text,
    sketch           int[],
    meta             jsonb,
    -- Null unless something is the matter: such a column takes no room.
    base_at          timestamptz,
    planned_due      timestamptz,
    is_denied        boolean
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.page is
    'What is known of a page. Its place in the queue is in queue, new_page or inbox.';
comment on column recrawl_internal.page.page_id is
    'From the sequence page_id; the top bits stay free for a shard number.';
comment on column recrawl_internal.page.key is
    'First 128 bits of the sha256 of the canonical URL: the page''s identity.';
comment on column recrawl_internal.page.host_id is 'Never changes.';
comment on column recrawl_internal.page.due_at is
    'Copy of the due time in the queue (there is no index from page to queue row), as of the last report; null = '
    'waits among the new pages.';
comment on column recrawl_internal.page.fetched_at is 'Last successful fetch.';
comment on column recrawl_internal.page.reported_at is 'Last report of any outcome.';
comment on column recrawl_internal.page.last_lease is
    'The newest lease it was reported on in time. Lease ids of a page ascend: a lease that contains it holds it '
    'while this is less.';
comment on column recrawl_internal.page.stale_lease is
    'The newest lease it was reported on too late: that counts as an observation once.';
comment on column recrawl_internal.page.moved_to is 'Target of a permanent redirect.';
comment on column recrawl_internal.page.value is
    'What its freshness is worth: pinned, or found by the job opic, or at first a part of the value of the page '
    'that linked to it.';
comment on column recrawl_internal.page.pinned_value is 'Where somebody who knows pinned it.';
comment on column recrawl_internal.page.frequency is
    'Fetches per day that its due times follow; brought up to date by reports and by allocation. Null = the '
    'setting.';
comment on column recrawl_internal.page.pinned_rate is
    'Changes per day, where somebody who knows pinned it; null = it is estimated.';
comment on column recrawl_internal.page.seen_changes is
    'Evidence, with seen_days: its rate is believed to be Gamma distributed as if these were added to what its '
    'host''s prior saw.';
comment on column recrawl_internal.page.seen_days is 'See seen_changes.';
comment on column recrawl_internal.page.relevance is
    'How well it fits the crawl, 0 to 1, as last reported; null = unknown, which counts as one half.';
comment on column recrawl_internal.page.pinned_relevance is 'Where somebody who knows pinned it.';
comment on column recrawl_internal.page.fetches is 'Successful fetches.';
comment on column recrawl_internal.page.changes is 'Changes seen by them.';
comment on column recrawl_internal.page.attempts is 'Attempts in a row that failed or were never reported.';
comment on column recrawl_internal.page.depth is 'Links away from where the crawl began.';
comment on column recrawl_internal.page.last_status is 'HTTP status of the last report; 0 or less = transport error.';
comment on column recrawl_internal.page.state is
    'live pages are in the queue; gone (410), moved (301, 308), excluded (by pattern) and forgotten ones are kept '
    'so that they do not come back.';
comment on column recrawl_internal.page.url is 'The URL to fetch, as first given, without fragment.';
comment on column recrawl_internal.page.etag is 'Validator of the fetch that the next one is compared with.';
comment on column recrawl_internal.page.last_modified is
    'Validator of the fetch that the next one is compared with.';
comment on column recrawl_internal.page.content_hash is
    'Of the fetch that the next one is compared with, in whatever form the crawler sends.';
comment on column recrawl_internal.page.sketch is
    'Min-hash sketch of the fetch that the next one is compared with.';
comment on column recrawl_internal.page.meta is 'The user''s own; handed out with the page.';
comment on column recrawl_internal.page.base_at is
    'When the version was fetched that the next one is compared with, whose etag, last_modified, content_hash '
    'and sketch these are, where the fetches since then brought nothing to compare; null = the last fetch.';
comment on column recrawl_internal.page.planned_due is
    'When it was due before a hint or fetch_now brought it forward; null = nothing did since the last fetch.';
comment on column recrawl_internal.page.is_denied is 'robots.txt forbids it, as of the last report; else null.';

create table recrawl_internal.exclusion (
    pattern     text        primary key,
    excluded_at timestamptz not null
);
comment on table recrawl_internal.exclusion is 'Regular expressions; a canonical URL that matches one is kept out.';
comment on column recrawl_internal.exclusion.pattern is 'POSIX regular expression over the canonical URL.';
comment on column recrawl_internal.exclusion.excluded_at is 'When exclude() was called.';

-- Without an index: it is only appended to, read from end to end and truncated.
create table recrawl_internal.fetch_log (
    part    int         not null,
    page_id bigint      not null,
    at      timestamptz not null,
    days    real        not null,
    changed boolean     not null
) partition by list (part);
comment on table recrawl_internal.fetch_log is 'What fetches saw, as far as the setting keep_log asks for it.';
comment on column recrawl_internal.fetch_log.part is 'Parts take turns; see log_part().';
comment on column recrawl_internal.fetch_log.page_id is 'The page.';
comment on column recrawl_internal.fetch_log.at is 'When it was fetched.';
comment on column recrawl_internal.fetch_log.days is 'Days since the fetch before.';
comment on column recrawl_internal.fetch_log.changed is 'Whether it had changed.';

-- ------------------------------------------------------------------------------------------------------ the queue

-- No primary key: a pop took a quarter longer with one (PostgreSQL 18). A row is found by (host, due, page).
create table recrawl_internal.queue (
    host_id bigint      not null,
    due_at  timestamptz not null,
    page_id bigint      not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index queue_due on recrawl_internal.queue (host_id, due_at);
comment on table recrawl_internal.queue is 'When each page is due. Changed only under the lock of the host''s row.';
comment on column recrawl_internal.queue.host_id is 'The page''s host.';
comment on column recrawl_internal.queue.due_at is
    'When the page is wanted next; while it is leased, a time the lease cannot reach.';
comment on column recrawl_internal.queue.page_id is 'The page.';

create table recrawl_internal.new_page (
    host_id bigint not null,
    page_id bigint not null,
    rank    real   not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index new_page_rank on recrawl_internal.new_page (host_id, rank, page_id);
comment on table recrawl_internal.new_page is
    'Pages that were never handed out, the most valuable first. Changed only under the lock of the host''s row.';
comment on column recrawl_internal.new_page.host_id is 'The page''s host.';
comment on column recrawl_internal.new_page.page_id is 'The page; among equals the first found goes first.';
comment on column recrawl_internal.new_page.rank is 'Minus its value: the index is read upwards.';

create table recrawl_internal.inbox (
    at       timestamptz not null default clock_timestamp(),
    host_id  bigint      not null,
    page_id  bigint      not null,
    old_due  timestamptz,
    new_due  timestamptz,
    old_rank real,
    new_rank real,
    failed   boolean     not null default false,
    revived  boolean     not null default false
) with (
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
create index inbox_at on recrawl_internal.inbox (at);
comment on table recrawl_internal.inbox is
    'What the queue must learn. Written without locking hosts; drain applies it in order under their locks.';
comment on column recrawl_internal.inbox.at is 'Wall clock when written.';
comment on column recrawl_internal.inbox.host_id is 'The page''s host.';
comment on column recrawl_internal.inbox.page_id is 'The page.';
comment on column recrawl_internal.inbox.old_due is 'Its row in queue, if it has one.';
comment on column recrawl_internal.inbox.new_due is 'Where it goes in queue, if anywhere.';
comment on column recrawl_internal.inbox.old_rank is 'Its row in new_page, if it has one.';
comment on column recrawl_internal.inbox.new_rank is 'Where it goes in new_page, if anywhere.';
comment on column recrawl_internal.inbox.failed is 'A failed fetch that may be the host''s fault.';
comment on column recrawl_internal.inbox.revived is
    'A dead page that lives again: it enters only if it has no place any more.';

create table recrawl_internal.link_later (
    at      timestamptz not null default clock_timestamp(),
    page_id bigint,
    key     uuid        not null,
    url     text        not null,
    worth   float8,
    depth   int         not null,
    tries   int         not null default 0
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
create index link_later_turn on recrawl_internal.link_later (tries, at);
create index link_later_held on recrawl_internal.link_later (key) where tries > 0;
comment on table recrawl_internal.link_later is
    'Links to what somebody else was taking in, in a transaction that stayed open: upkeep takes them in later.';
comment on column recrawl_internal.link_later.at is 'Wall clock when written.';
comment on column recrawl_internal.link_later.page_id is 'The page that links; null = it redirects.';
comment on column recrawl_internal.link_later.key is 'Of the page that it links to.';
comment on column recrawl_internal.link_later.url is 'What it links to, as reported.';
comment on column recrawl_internal.link_later.worth is 'The value that a new page starts with.';
comment on column recrawl_internal.link_later.depth is 'Links from where the crawl began.';
comment on column recrawl_internal.link_later.tries is
    'How often upkeep found it held: reports do not wait for it any more.';

create sequence recrawl_internal.lease_id;

-- Arrays stay in the row up to 8 kB: out of line they would cost two more index inserts a pop.
create table recrawl_internal.lease (
    lease_id    bigint        not null,
    round       int           not null,
    popped_at   timestamptz   not null,
    lease_until timestamptz   not null,
    unreported  int           not null,
    new_pages   int           not null default 0,
    page_ids    bigint[]      not null,
    slots       timestamptz[] not null,
    start_bys   timestamptz[] not null,
    dues        timestamptz[] not null,
    held_dues   timestamptz[] not null,
    busy_hosts  bigint[],
    primary key (lease_id, round)
) with (
    toast_tuple_target = 8160,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
create index lease_until on recrawl_internal.lease (lease_until);
comment on table recrawl_internal.lease is
    'What each next_pages call handed out and is not fully reported yet; a call that needed several rounds has '
    'several rows.';
comment on column recrawl_internal.lease.lease_id is 'One per call of next_pages.';
comment on column recrawl_internal.lease.round is 'Which round of the call.';
comment on column recrawl_internal.lease.popped_at is 'When it was handed out.';
comment on column recrawl_internal.lease.lease_until is 'When what is unreported goes back to the queue.';
comment on column recrawl_internal.lease.unreported is 'How many of its pages were not reported yet.';
comment on column recrawl_internal.lease.new_pages is 'How many of its pages were new.';
comment on column recrawl_internal.lease.page_ids is 'The pages, in order of id.';
comment on column recrawl_internal.lease.slots is 'fetch_at of each page.';
comment on column recrawl_internal.lease.start_bys is 'start_by of each page.';
comment on column recrawl_internal.lease.dues is 'The due time, on the page''s own grid, that each slot serves.';
comment on column recrawl_internal.lease.held_dues is 'The due time each page has in the queue meanwhile.';
comment on column recrawl_internal.lease.busy_hosts is 'one_at_a_time hosts among them.';

-- Sequences as cells of one number, microseconds since 1970: written in place, read without a snapshot, never bloated
-- by a snapshot held elsewhere, never rolled back. Each is only a hint (see sql/upkeep/horizon.sql).
create sequence recrawl_internal.host_horizon;
create sequence recrawl_internal.inbox_horizon;
create sequence recrawl_internal.lease_horizon;
create sequence recrawl_internal.horizon_recheck;
create sequence recrawl_internal.next_tick;
create sequence recrawl_internal.latest_tick;
create sequence recrawl_internal.default_gap_since;

-- A horizon for each class of new pages, and which classes any host stands in, a bit each.
create sequence recrawl_internal.new_classes minvalue 0 start 0;
do $$
begin
    for class in 0 .. 32 loop
        execute 'create sequence recrawl_internal.new_horizon_' || class;
    end loop;
end $$;

-- Beside what the budget would have come to since 1970, see sql/hand_out/pace.sql.
create sequence recrawl_internal.fetch_count minvalue 0 start 0;
create sequence recrawl_internal.new_count minvalue 0 start 0;

create sequence recrawl_internal.short_ask_count minvalue 0 start 0;
create table recrawl_internal.budget_step (
    at         timestamptz not null,
    asks       bigint not null,
    short      bigint not null,
    handed_out bigint not null
);
create index budget_step_at on recrawl_internal.budget_step (at);
comment on table recrawl_internal.budget_step is
    'Where the counts stood each five minutes of the last day in which crawlers asked, as far as the budget is '
    'measured.';
comment on column recrawl_internal.budget_step.at is 'When that was.';
comment on column recrawl_internal.budget_step.asks is 'How often crawlers had asked for pages.';
comment on column recrawl_internal.budget_step.short is 'How often they had got fewer than they asked for.';
comment on column recrawl_internal.budget_step.handed_out is 'How many pages they had got.';

create table recrawl_internal.pulling_in (
    only_row    boolean primary key default true check (only_row),
    wrong_until timestamptz,
    host_id     bigint  not null default 0,
    page_id     bigint  not null default 0,
    passed_over int     not null default 0,
    hosts       int     not null default 0,
    leases      int     not null default 0,
    pages       int     not null default 0
);
insert into recrawl_internal.pulling_in default values;
comment on table recrawl_internal.pulling_in is
    'How far it is done, after the clock was ahead, to pull in what lies in the future: see '
    'sql/upkeep/clock.sql.';
comment on column recrawl_internal.pulling_in.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.pulling_in.wrong_until is
    'The latest time at which anybody ticked; null = the clock was not ahead.';
comment on column recrawl_internal.pulling_in.host_id is 'Hosts up to this one were looked at in this round.';
comment on column recrawl_internal.pulling_in.page_id is 'Pages up to this one were looked at in this round.';
comment on column recrawl_internal.pulling_in.passed_over is
    'Hosts and pages that somebody held in this round: another follows.';
comment on column recrawl_internal.pulling_in.hosts is 'Hosts pulled in so far.';
comment on column recrawl_internal.pulling_in.leases is 'Leases ended so far.';
comment on column recrawl_internal.pulling_in.pages is 'Pages pulled in so far.';

-- Row types that its functions pass to each other.

create type recrawl_internal.visits as (
    due_hosts  tid[],
    new_hosts  tid[],
    due_pages  int,
    new_pages  int,
    due_short  boolean,
    new_short  boolean,
    worst_rank real
);
comment on type recrawl_internal.visits is
    'The hosts that a round of next_pages visits, from either line, and how many pages they are to give; '
    'whether a line has no more hosts; new pages worse than worst_rank stay.';

create type recrawl_internal.slot_of_host as (
    host_id  bigint,
    slot     timestamptz,
    start_by timestamptz
);
comment on type recrawl_internal.slot_of_host is 'A time in which a request to a host may start.';

create type recrawl_internal.measured as (
    short_share float8,
    now         float8,
    hour        float8,
    most        float8,
    in_a_day    float8
);
comment on type recrawl_internal.measured is
    'Of crawlers: what share of their asks came out short of late; what they got in the last step and in the '
    'last hour; in the last hour in which nothing was short; and what that comes to where they pause and '
    'revisits wait for them. Pages a day.';

-- ------------------------------------------------------------------------------------------------------ the graph

-- Eight bytes a link, packed, instead of an array: read three times as fast (PostgreSQL 18, ADBC), because nothing is
-- taken apart on the way to the worker.
create table recrawl_internal.link (
    page_id bigint primary key,
    targets bytea  not null
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.link is 'Out-links, one packed row per source page; no row = unknown, empty = none.';
comment on column recrawl_internal.link.page_id is 'The page that links.';
comment on column recrawl_internal.link.targets is
    'Pages it links to, eight bytes each, the highest first: distinct, ascending, never itself.';

-- Vacuum must not shorten it: that it is full is how a reader knows that more happened than it holds, see
-- is_news_full().
create table recrawl_internal.graph_news (
    page_id bigint
) with (
    vacuum_truncate = off,
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
comment on table recrawl_internal.graph_news is
    'Pages that came, left, link elsewhere or have another relevance since a worker last read the graph.';
comment on column recrawl_internal.graph_news.page_id is 'The page; null = too much for a list.';

create table recrawl_internal.graph_state (
    only_row       boolean primary key default true check (only_row),
    token          bigint,
    terms          jsonb,
    mean_relevance float8  not null default 0.5,
    first_share    float8  not null default 0.5
);
insert into recrawl_internal.graph_state default values;
comment on table recrawl_internal.graph_state is
    'What the last run of the job opic leaves to the next, and to new pages.';
comment on column recrawl_internal.graph_state.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.graph_state.token is
    'The run that read graph_news last: whoever remembers its graph needs only the news since.';
comment on column recrawl_internal.graph_state.terms is
    'The weights and the mean relevance that the values of all pages were last worked out with; null = they must '
    'be worked out again.';
comment on column recrawl_internal.graph_state.mean_relevance is 'Of all pages; unknown counts as one half.';
comment on column recrawl_internal.graph_state.first_share is
    'What part of the value of the page that links to it a new page starts with.';

create table recrawl_internal.page_score (
    page_id    bigint primary key,
    hub        real   not null,
    authority  real   not null,
    importance real,
    in_links   real   not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.page_score is
    'What its place in the graph says of a page. Written by the job opic alone, where it moved by a hundredth.';
comment on column recrawl_internal.page_score.page_id is 'The page.';
comment on column recrawl_internal.page_score.hub is 'How good a list of links it is; 1 is the mean of all pages.';
comment on column recrawl_internal.page_score.authority is
    'How much good lists link to it; 1 is the mean of all pages.';
comment on column recrawl_internal.page_score.importance is
    'How often somebody who follows links at random would come by; 1 is the mean of all pages. Null = nobody '
    'asked for it.';
comment on column recrawl_internal.page_score.in_links is 'Pages that link to it.';

-- ----------------------------------------------------------------------------------------------------------- jobs

create sequence recrawl_internal.job_token;

-- When somebody last changed what an allocation depends on: microseconds since 1970, as the horizons are.
create sequence recrawl_internal.steered;

create table recrawl_internal.job (
    token       bigint      primary key,
    job         text        not null,
    started_at  timestamptz not null,
    alive_until timestamptz not null,
    ended_at    timestamptz,
    ok          boolean,
    message     text,
    pid         int
);
create unique index job_running on recrawl_internal.job (job) where ended_at is null;
create index job_by_name on recrawl_internal.job (job, token);
comment on table recrawl_internal.job is
    'Runs of the batch jobs. One that has not ended holds its job, as long as its worker is alive.';
comment on column recrawl_internal.job.token is
    'The fence: what a run writes is taken only while no other run has taken over.';
comment on column recrawl_internal.job.job is 'Its name; recrawl run lists them.';
comment on column recrawl_internal.job.started_at is 'When it began.';
comment on column recrawl_internal.job.alive_until is
    'A worker that has not been heard of until then is dead, and the job free.';
comment on column recrawl_internal.job.ended_at is 'When it ended, or was found dead.';
comment on column recrawl_internal.job.ok is 'Whether its result is in force.';
comment on column recrawl_internal.job.message is 'What it did, or why it failed.';
comment on column recrawl_internal.job.pid is
    'The server process of its connection: when that has ended, so has the run.';

create table recrawl_internal.allocation (
    token          bigint      primary key,
    started_at     timestamptz not null,
    seconds        float8      not null,
    policy         text        not null,
    objective      text        not null,
    budget         float8      not null,
    spent          float8      not null,
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
    new_pages      float8      not null default 0,
    newest_page    bigint,
    worth          float8,
    handed_out     bigint
);
comment on table recrawl_internal.allocation is
    'Every allocation that came into force, with the proof that it is the best one.';
comment on column recrawl_internal.allocation.token is 'The run of the job.';
comment on column recrawl_internal.allocation.started_at is 'When the pages were read.';
comment on column recrawl_internal.allocation.seconds is 'From reading the pages until its prices were in force.';
comment on column recrawl_internal.allocation.policy is 'OPT_POLITE: the best within the budget and every host''s gap.';
comment on column recrawl_internal.allocation.objective is 'What was maximised.';
comment on column recrawl_internal.allocation.budget is
    'Fetches per day that could be spent, those of new pages included.';
comment on column recrawl_internal.allocation.spent is
    'Fetches per day given to pages; less than the budget and new pages leave where the hosts'' gaps, or the '
    'shortest interval, leave no use for it.';
comment on column recrawl_internal.allocation.price is
    'What the last fetch of the budget earns per day; hosts at their cap ask more. Null = there is none that '
    'would not earn more than any number.';
comment on column recrawl_internal.allocation.pages is 'Pages that took part.';
comment on column recrawl_internal.allocation.hosts is 'Hosts of these pages.';
comment on column recrawl_internal.allocation.capped_hosts is 'Hosts whose gap, not the budget, decides.';
comment on column recrawl_internal.allocation.utility is
    'The objective reached, per unit of value; null = a loss without limit, as pages that change are not '
    'fetched.';
comment on column recrawl_internal.allocation.polite_bound is
    'What the objective could at most be within budget and gaps, without floors and ceilings.';
comment on column recrawl_internal.allocation.unpolite_bound is 'What it could at most be within the budget alone.';
comment on column recrawl_internal.allocation.residual is
    'How far, relatively, the frequencies miss what must be spent.';
comment on column recrawl_internal.allocation.spread is
    'How far, relatively, what a fetch earns differs between pages that should earn the same.';
comment on column recrawl_internal.allocation.duality_gap is
    'How far, relatively, the objective may at most be from the optimum.';
comment on column recrawl_internal.allocation.floor_days is
    'The longest interval in days that any page of a host that may be fetched has; null = there are no floors.';
comment on column recrawl_internal.allocation.new_pages is
    'Fetches per day that new pages were reckoned to take.';
comment on column recrawl_internal.allocation.newest_page is
    'The newest page when the pages were read: how many are found is seen by the runs to come.';
comment on column recrawl_internal.allocation.worth is
    'The value of all pages that took part, together. Null for runs that did not note it.';
comment on column recrawl_internal.allocation.handed_out is
    'How many pages had been handed out by then: runs to come see whether too many or too few were.';

create table recrawl_internal.opic (
    token      bigint      primary key,
    started_at timestamptz not null,
    pages      bigint      not null,
    links      bigint      not null,
    is_full    boolean     not null,
    sweeps     int         not null,
    residual   float8      not null,
    converged  boolean     not null,
    cash       float8      not null,
    moved      bigint      not null,
    seconds    float8      not null,
    error      float8
);
comment on table recrawl_internal.opic is 'Every run of the job opic that was written in full.';
comment on column recrawl_internal.opic.token is 'The run of the job.';
comment on column recrawl_internal.opic.started_at is 'When the graph was read.';
comment on column recrawl_internal.opic.pages is 'Pages of the graph: all that live.';
comment on column recrawl_internal.opic.links is 'Links between them.';
comment on column recrawl_internal.opic.is_full is 'Whether all of the graph was read, or only the news.';
comment on column recrawl_internal.opic.sweeps is
    'How often cash went along every link, once each way; for importance, one way.';
comment on column recrawl_internal.opic.residual is
    'A bound on how far the last sweep moved hub and authority scores, in all, each adding up to 1; of '
    'importance, if that is more. The error may be a hundred times as large.';
comment on column recrawl_internal.opic.converged is
    'Whether the error is as small as wanted; if not, the next run goes on from here.';
comment on column recrawl_internal.opic.cash is 'All cash: one for every page and one for the virtual page.';
comment on column recrawl_internal.opic.moved is
    'Pages whose scores were written: new ones, and those that moved by a hundredth.';
comment on column recrawl_internal.opic.seconds is 'From reading the graph until everything was written.';
comment on column recrawl_internal.opic.error is
    'How far off these scores are, in all, by estimate: sweeps end once it is as small as wanted. Null for '
    'runs that did not estimate it.';

-- --------------------------------------------------------------------------------------------------------- vitals

-- Written once by every report. Without an index: it is only appended to, read and truncated.
create table recrawl_internal.pulse (
    part         int         not null,
    at           timestamptz not null,
    letters      text        not null,
    late         real[],
    lost         float8
) partition by list (part);
comment on table recrawl_internal.pulse is
    'What each report brought, a row a call, for the last half an hour. The job vitals adds it up.';
comment on column recrawl_internal.pulse.part is 'Parts take turns; see log_part().';
comment on column recrawl_internal.pulse.at is 'When it was reported.';
comment on column recrawl_internal.pulse.letters is
    'A letter a result: changed, unchanged, nothing told, first, missing, error, throttled, denied; stale, '
    'repeated, x = refused.';
comment on column recrawl_internal.pulse.late is 'How late each revisit was, in seconds.';
comment on column recrawl_internal.pulse.lost is 'Whole periods that passed before them; null = none.';

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
comment on table recrawl_internal.vital is
    'What happened in each minute, and how things stood at its end. Written by the job vitals alone.';
comment on column recrawl_internal.vital.at is 'When the minute began.';
comment on column recrawl_internal.vital.fetches is
    'Fetches reported in it: changed, unchanged, first, missing, failed, throttled and denied together.';
comment on column recrawl_internal.vital.changed is 'Of them, pages that had changed.';
comment on column recrawl_internal.vital.unchanged is
    'Of them, pages that had not changed, as far as anything tells.';
comment on column recrawl_internal.vital.untold is 'Those of the unchanged of which nothing tells.';
comment on column recrawl_internal.vital.first is 'Of them, first successful fetches of a page.';
comment on column recrawl_internal.vital.missing is
    'Of them, pages that were not there: 404, 410 and the like, or moved for good.';
comment on column recrawl_internal.vital.failed is 'Of them, failures: 5xx, or no answer.';
comment on column recrawl_internal.vital.throttled is 'Of them, refused by the host with 429 or 503.';
comment on column recrawl_internal.vital.denied is 'Of them, forbidden by robots.txt.';
comment on column recrawl_internal.vital.stale is
    'Reports on a lease that did not hold the page, beside the fetches.';
comment on column recrawl_internal.vital.duplicate is 'Reports of what was reported before.';
comment on column recrawl_internal.vital.refused is 'Reports that were invalid, or of an unknown page.';
comment on column recrawl_internal.vital.late_1m is 'Revisits in a slot at most a minute after they were due.';
comment on column recrawl_internal.vital.late_10m is 'Revisits 1 to 10 minutes late.';
comment on column recrawl_internal.vital.late_1h is 'Revisits 10 minutes to an hour late.';
comment on column recrawl_internal.vital.late_6h is 'Revisits 1 to 6 hours late.';
comment on column recrawl_internal.vital.late_1d is 'Revisits 6 hours to a day late.';
comment on column recrawl_internal.vital.late_more is 'Revisits more than a day late.';
comment on column recrawl_internal.vital.late_seconds is 'How late these revisits were, in all, in seconds.';
comment on column recrawl_internal.vital.lost is
    'Visits that were left out: whole periods that passed before a late one.';
comment on column recrawl_internal.vital.handed_out is 'Pages handed out.';
comment on column recrawl_internal.vital.expired is 'Pages that came back unreported when their lease ran out.';
comment on column recrawl_internal.vital.asks is 'Calls of next_pages while the crawl was not paused.';
comment on column recrawl_internal.vital.empty_asks is 'Those of them that got nothing.';
comment on column recrawl_internal.vital.new_pages is 'Pages taken in.';
comment on column recrawl_internal.vital.due is 'Revisits that are due, from a sample of the queue.';
comment on column recrawl_internal.vital.due_crawler is
    'Of them, those that wait for a crawler only: their host is free.';
comment on column recrawl_internal.vital.due_gap is
    'Of them, those that wait for their host''s gap, behind others of it or for the page that is out.';
comment on column recrawl_internal.vital.due_blocked is 'Of them, those whose host is blocked.';
comment on column recrawl_internal.vital.new_waiting is
    'Pages that were never handed out, from a sample.';
comment on column recrawl_internal.vital.leased is 'Pages that are out.';
comment on column recrawl_internal.vital.pages is
    'Pages taken in and not forgotten, as of the last count by host.';
comment on column recrawl_internal.vital.hosts is 'Hosts, as of the last count.';
comment on column recrawl_internal.vital.hosts_ready is 'Hosts with work that are free, counted to 1,000.';
comment on column recrawl_internal.vital.hosts_blocked is 'Hosts that are blocked, as of the last count.';
comment on column recrawl_internal.vital.hosts_capped is
    'Hosts whose gap, not the budget, decides, as of the last allocation.';
comment on column recrawl_internal.vital.ready_wait is
    'How long the first free host with work has waited for a crawler; null = there is none.';
comment on column recrawl_internal.vital.inbox_wait is
    'How long the oldest entry of the inbox has waited; null = it is empty.';
comment on column recrawl_internal.vital.fresh is
    'Share of the value of the pages that allocation is for which is fresh by estimate, from a sample.';
comment on column recrawl_internal.vital.fresh_error is 'Standard error of fresh, by the sample.';
comment on column recrawl_internal.vital.covered is
    'Share of the value of all pages that was fetched at least once, from a sample.';
comment on column recrawl_internal.vital.promised is
    'Share that the last allocation is to keep fresh; null where it is not for freshness.';
comment on column recrawl_internal.vital.possible is
    'What that share could at most be within budget and gaps.';
comment on column recrawl_internal.vital.unpolite is 'What it could at most be within the budget alone.';
comment on column recrawl_internal.vital.budget is 'Fetches per day in force; null = none.';

create table recrawl_internal.vital_hour (like recrawl_internal.vital including all);
comment on table recrawl_internal.vital_hour is 'Sums, and means, of the minutes of each hour in vital.';
comment on column recrawl_internal.vital_hour.at is 'When the hour began.';

-- What the job vitals remembers from one minute to the next.
create table recrawl_internal.vitals_state (
    only_row      boolean primary key default true check (only_row),
    handed_out    bigint not null default 0,
    expired       bigint not null default 0,
    asks          bigint not null default 0,
    leases        bigint not null default 0,
    page_id       bigint not null default 0,
    hosts_at      timestamptz,
    pages         bigint,
    hosts         bigint,
    hosts_blocked bigint,
    still_since   timestamptz
);
comment on table recrawl_internal.vitals_state is
    'What the job vitals remembers from one minute to the next: what had been counted, and how hosts stood.';
comment on column recrawl_internal.vitals_state.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.vitals_state.handed_out is 'Where the sequence handed_out_count stood.';
comment on column recrawl_internal.vitals_state.expired is 'Where the sequence expired_count stood.';
comment on column recrawl_internal.vitals_state.asks is 'Where the sequence ask_count stood.';
comment on column recrawl_internal.vitals_state.leases is 'Where the sequence lease_id stood.';
comment on column recrawl_internal.vitals_state.page_id is 'Where the sequence page_id stood.';
comment on column recrawl_internal.vitals_state.hosts_at is 'When all hosts were looked at last.';
comment on column recrawl_internal.vitals_state.pages is 'How many pages they had.';
comment on column recrawl_internal.vitals_state.hosts is 'How many there were.';
comment on column recrawl_internal.vitals_state.hosts_blocked is 'How many of them were blocked.';
comment on column recrawl_internal.vitals_state.still_since is
    'Since when nothing is reported though hosts are free; null = the crawl goes on.';
insert into recrawl_internal.vitals_state default values;

create table recrawl_internal.late_host (
    host_id    bigint primary key,
    due        bigint      not null,
    oldest_due timestamptz not null,
    as_of      timestamptz not null
);
comment on table recrawl_internal.late_host is
    'The hosts whose revisits are longest due, as the job vitals found them.';
comment on column recrawl_internal.late_host.host_id is 'The host.';
comment on column recrawl_internal.late_host.due is 'Revisits of it that were due, counted to 10,000.';
comment on column recrawl_internal.late_host.oldest_due is 'The oldest due time among them.';
comment on column recrawl_internal.late_host.as_of is 'When this was found out.';

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
comment on table recrawl_internal.held_back is
    'The hosts whose gap costs most, by the last allocation.';
comment on column recrawl_internal.held_back.host_id is 'The host.';
comment on column recrawl_internal.held_back.pages is 'Pages of it that took part.';
comment on column recrawl_internal.held_back.gap is 'Least time between two requests to it.';
comment on column recrawl_internal.held_back.slot_every is
    'Time between two slots: the gap, and the window in which a request may start.';
comment on column recrawl_internal.held_back.wanted is
    'Fetches per day that its pages would get without a gap, at the price of the budget; null = '
    'more than any number.';
comment on column recrawl_internal.held_back.frequency is 'Fetches per day that its pages were given.';
comment on column recrawl_internal.held_back.gain is
    'What half the gap would bring of the objective, per unit of value, by a close bound.';
comment on column recrawl_internal.held_back.as_of is 'When this was worked out.';

create table recrawl_internal.event (
    event_id bigint generated always as identity primary key,
    at       timestamptz not null,
    kind     text        not null
             constraint "kind must be one of"
             check (kind in ('setting', 'host', 'pages', 'job', 'crawl')),
    subject  text        not null,
    says     text        not null,
    by       text
);
create index event_at on recrawl_internal.event (at);
comment on table recrawl_internal.event is 'What people decided, and what happened to the crawl as a whole.';
comment on column recrawl_internal.event.event_id is 'In order of writing.';
comment on column recrawl_internal.event.at is 'When it happened.';
comment on column recrawl_internal.event.kind is
    'What it is about: a setting, a host, pages, a job, or the crawl as a whole.';
comment on column recrawl_internal.event.subject is 'Which setting, host, pattern or job.';
comment on column recrawl_internal.event.says is 'What happened, in words.';
comment on column recrawl_internal.event.by is 'The login that did it; null = the crawl itself.';

-- Counters that nobody waits for.
create sequence recrawl_internal.handed_out_count;
create sequence recrawl_internal.expired_count;
create sequence recrawl_internal.ask_count;
-- Times, as the horizons are.
create sequence recrawl_internal.worker_ticked;
select setval('recrawl_internal.worker_ticked', (extract(epoch from clock_timestamp()) * 1000000)::bigint);
create sequence recrawl_internal.events_paid_until;

-- ----------------------------------------------------------------------------------------------- parts of the logs

-- Quarters that take turns: the oldest is emptied at a stroke, which leaves nothing to vacuum. (No format(): what
-- alembic writes as a script would double its percent signs.)
do $$
declare
    log     text;
    quarter text;
    col     record;
begin
    foreach log in array '{fetch_log,pulse}'::text[] loop
        for part in 0 .. 3 loop
            quarter := 'recrawl_internal.' || log || '_' || part;
            execute 'create table ' || quarter || ' partition of recrawl_internal.' || log
                    || ' for values in (' || part || ')';
            execute 'alter table ' || quarter || ' replica identity full';
            execute 'comment on table ' || quarter || ' is ''A quarter of ' || log || '.''';
            for col in
                select a.attname as name, col_description(a.attrelid, a.attnum) as meaning
                from pg_attribute a where a.attrelid = ('recrawl_internal.' || log)::regclass and a.attnum > 0
            loop
                execute 'comment on column ' || quarter || '.' || col.name || ' is ' || quote_literal(col.meaning);
            end loop;
        end loop;
    end loop;
end $$;

-- Without a key, PostgreSQL refuses what changes a row as soon as somebody publishes all tables. Costs nothing where
-- wal_level is not logical.
alter table recrawl_internal.host replica identity full;
alter table recrawl_internal.queue replica identity full;
alter table recrawl_internal.new_page replica identity full;
alter table recrawl_internal.inbox replica identity full;
alter table recrawl_internal.link_later replica identity full;
alter table recrawl_internal.graph_news replica identity full;
alter table recrawl_internal.budget_step replica identity full;
alter table recrawl_internal.fetch_log replica identity full;
alter table recrawl_internal.pulse replica identity full;

-- ------------------------------------------------------------------------------------------------ inside a report

-- Row types that functions of sql/ pass to each other.

create type recrawl_internal.result_element as (
    page_id       bigint,
    url           text,
    lease_id      bigint,
    status        int,
    fetched_at    timestamptz,
    changed       boolean,
    content_hash  text,
    changes       int,
    last_modified timestamptz,
    etag          text,
    links         text[],
    retry_after   text,
    crawl_delay   float8,
    redirect_to   text,
    robots_denied boolean,
    meta          jsonb,
    relevance     float8,
    sketch        int[]
);
comment on type recrawl_internal.result_element is 'What an element of report''s array may hold.';

create type recrawl_internal.result as (
    ord           int,
    problem       text,
    page_id       bigint,
    url           text,
    lease_id      bigint,
    status        int,
    fetched_at    timestamptz,
    changed       boolean,
    content_hash  text,
    changes       int,
    last_modified timestamptz,
    etag          text,
    links         text[],
    retry_after   interval,
    crawl_delay   interval,
    redirect_to   text,
    robots_denied boolean,
    meta          jsonb,
    relevance     real,
    sketch        int[]
);
comment on type recrawl_internal.result is 'One reported result, checked; problem says why it is invalid.';

create type recrawl_internal.found_links as (
    ord      int,
    page_id  bigint,
    targets  bytea,
    moved_to bigint
);
comment on type recrawl_internal.found_links is 'Where a reported page links and redirects to, as pages.';

create type recrawl_internal.host_news as (
    host_id     bigint,
    throttled   boolean,
    retry_after interval,
    status      int,
    late_start  timestamptz,
    freed_by    bigint,
    crawl_delay interval
);
comment on type recrawl_internal.host_news is 'What a report says about a host.';

create type recrawl_internal.intern_item as (
    place     int,
    ord       int,
    key       uuid,
    url       text,
    canonical text,
    host      text,
    value     real,
    rate      real,
    due       timestamptz,
    meta      jsonb,
    depth     int
);
comment on type recrawl_internal.intern_item is 'A URL on its way to become a page.';

-- ------------------------------------------------------------------------------------------------------------ sql/

create table recrawl_internal.replayed (
    only_row boolean primary key default true check (only_row),
    digest   text    not null,
    in_force text
);
comment on table recrawl_internal.replayed is 'Which state of sql/ is in force.';
comment on column recrawl_internal.replayed.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.replayed.digest is 'sha256 over the files of sql/.';
comment on column recrawl_internal.replayed.in_force is
    'What sql/ had made by then, and who might use it, as a hash: restores lose rights, people change them.';
