-- Hosts. The row of a host is hot: each pop updates it, and a change of the host's queue needs its lock.
--
-- A host stands in two lines at once. next_pages visits the hosts of both lines. `discovery` says how to share.
--
--     line of revisits                                line of new pages
--     ready_at      when to visit it for a due page   new_class     class of value of its best new page
--        │                                            new_ready_at  when to visit it for a new page
--        │ index host_ready                              │ index host_new: class first, then time
--        ▼                                               ▼
--     queue, from head_due on                         new_page, from (head_new_rank, head_new_id) on
--        └───────────── new_credit: new pages before the next due revisit ─────────────┘
--
--     its slots       last_start_by + gap = the next slot. gap: null = the longer of default_gap and crawl_delay
--     asked already   busy_until, busy_lease: the page of a host that is one_at_a_time
--     held back       blocked_until, blocked_reason; strikes = blocks in a row; failures since failures_since
--     counters        fetches, pages
--
-- Both places are `infinity` if the line has no page of the host.
-- Example: a host with gap 1 s was asked at 12:00:00. Its next due page is of 11:50, so ready_at is 12:00:01. It has no
-- new page, so new_class is null and new_ready_at is infinity.

create sequence recrawl_internal.host_id;
comment on sequence recrawl_internal.host_id is 'Ids of hosts.';

-- Fixed width first. ready_at is indexed and changes at each pop, so a pop would also write each further index.
create table recrawl_internal.host (
    host_id        bigint      not null,
    ready_at       timestamptz not null default 'infinity',
    new_ready_at   timestamptz not null default 'infinity',
    last_start_by  timestamptz not null default '-infinity',
    head_due       timestamptz not null default 'infinity',
    head_new_id    bigint,
    fetches        bigint      not null default 0,
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
    'A host: the unit of politeness. When it may be asked next, and where its queue begins.';
comment on column recrawl_internal.host.host_id is 'From the sequence host_id.';
comment on column recrawl_internal.host.ready_at is
    'Its place in the line of revisits: when next_pages should visit it for a due page. It is the latest of its next '
    'slot, its first due page, the end of its block and the time of writing. A place that is already due stays when '
    'the other line takes the slot.';
comment on column recrawl_internal.host.new_ready_at is
    'Its place in the line of new pages, within its class. It is computed as ready_at is, without a due page.';
comment on column recrawl_internal.host.last_start_by is
    'The last request to it starts no later than this: start_by of its last slot, or the start of a request that came '
    'later. The next slot is a gap after it.';
comment on column recrawl_internal.host.head_due is
    'No page of its queue is due before this. Index scans start here, so that they skip dead entries.';
comment on column recrawl_internal.host.head_new_id is
    'With head_new_rank: no new page of it comes before this one in the order of handing out; null = it has no new '
    'page.';
comment on column recrawl_internal.host.fetches is 'Pages handed out so far.';
comment on column recrawl_internal.host.failures_since is 'The value of fetches when failures was last set to zero.';
comment on column recrawl_internal.host.head_new_rank is 'See head_new_id.';
comment on column recrawl_internal.host.new_credit is
    'While revisits are due: the number of new pages it may give before the next revisit.';
comment on column recrawl_internal.host.pages is 'Its pages that were taken into the queue and not forgotten.';
comment on column recrawl_internal.host.failures is 'Failed fetches since failures_since.';
comment on column recrawl_internal.host.strikes is
    'Blocks in a row that 429, 503 or failures caused. Each doubles the next block.';
comment on column recrawl_internal.host.new_class is
    'Its class in the line of new pages, see class_in_line(); null = it has no new page.';
comment on column recrawl_internal.host.one_at_a_time is
    'It gives no further page until the report of the last one has come.';
comment on column recrawl_internal.host.gap is
    'Least time between two requests, set by an operator; null = the longer of default_gap and crawl_delay.';
comment on column recrawl_internal.host.crawl_delay is 'The delay that its robots.txt asks for, within limits.';
comment on column recrawl_internal.host.busy_until is 'If one_at_a_time: until then its page is leased.';
comment on column recrawl_internal.host.busy_lease is
    'The lease of that page. A report or release on another lease does not change busy_until.';
comment on column recrawl_internal.host.blocked_until is 'No page of it is handed out before this.';
comment on column recrawl_internal.host.name is
    'Its own name in host_name. Stored here too, so that a pop need not look it up.';
comment on column recrawl_internal.host.blocked_reason is 'The reason of the block.';

create table recrawl_internal.host_name (
    name      text   primary key,
    host_id   bigint not null,
    max_pages int
);
create index host_name_of_host on recrawl_internal.host_name (host_id);
comment on table recrawl_internal.host_name is
    'The names of hosts and their limit of pages. A host has its own name, and the names of hosts that are asked as '
    'it. Separate from host, so that no pop updates these indexes.';
comment on column recrawl_internal.host_name.name is
    'Host name or address in lower case, without port: http, https and every port share one gap.';
comment on column recrawl_internal.host_name.host_id is 'The host, or the host that it is asked as.';
comment on column recrawl_internal.host_name.max_pages is
    'It takes in no more pages than this; null = the setting max_pages. All names of a host have the same.';

-- Separate from host, whose rows are locked and rewritten by every pop.
create table recrawl_internal.host_terms (
    host_id       bigint  primary key,
    price         float8,
    ties          float8,
    floor         float8,
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
    'The terms on which the pages of a host are scheduled. Only jobs write them.';
comment on column recrawl_internal.host_terms.host_id is
    'The host. 0 = the common terms, which hold for every host that has no terms of its own.';
comment on column recrawl_internal.host_terms.price is
    'The gain per day that the next fetch of a page must reach; null = the common price, and there: no allocation yet.';
comment on column recrawl_internal.host_terms.ties is
    'Fetches per change for pages that earn exactly the price, when the budget or the gap runs out among equals; '
    'null = there are no such pages.';
comment on column recrawl_internal.host_terms.floor is
    'Fetches per day that each of its pages gets, however little they earn; null = the common floor.';
comment on column recrawl_internal.host_terms.pins_kept is
    'Share of the fetches asked for that pages with a pinned interval get; null = the common share, and there: all.';
comment on column recrawl_internal.host_terms.frequency is 'Fetches per day that all its pages together were given.';
comment on column recrawl_internal.host_terms.prior_changes is
    'With prior_days: the Gamma distribution of change rates that a new page starts from.';
comment on column recrawl_internal.host_terms.prior_days is 'See prior_changes.';
comment on column recrawl_internal.host_terms.is_capped is
    'Its gap, not the budget, decides its price; null = it took no part.';
comment on column recrawl_internal.host_terms.objective is
    'The objective that the prices belong to. Only the common row has it.';

create table recrawl_internal.robots (
    site        text        primary key,
    host_id     bigint      not null,
    good_until  timestamptz not null,
    crawl_delay interval,
    status      smallint    not null,
    rules       text
);
create index robots_of_host on recrawl_internal.robots (host_id);
comment on table recrawl_internal.robots is 'The robots.txt of each site. All crawlers share it.';
comment on column recrawl_internal.robots.site is
    'Scheme, host and port, as a canonical URL begins. Each site has a robots.txt of its own.';
comment on column recrawl_internal.robots.host_id is 'Its host. All sites of a host share the gap.';
comment on column recrawl_internal.robots.good_until is 'From then on it should be fetched again.';
comment on column recrawl_internal.robots.crawl_delay is
    'The delay that it asks for. The host takes the longest of its sites.';
comment on column recrawl_internal.robots.status is 'HTTP status of the last answer.';
comment on column recrawl_internal.robots.rules is
    'The text; null = the site has no robots.txt, so everything is allowed.';
