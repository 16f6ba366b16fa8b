-- The queue: when each page is due, and the leases of pages that crawlers have.
--
-- The life of a page:
--
--      add_pages                                     next_pages (holds the host's lock)
--          │                                                  │
--          ▼         drain (holds the host's lock)            ▼
--     ┌─────────┐   ┌───────────────────────────────┐    ┌─────────┐
--     │  inbox  │──▶│ new_page: never handed out    │───▶│  lease  │  the page stays in queue, at a due time that
--     │         │   │ queue:    by due time         │    │         │  the lease cannot reach (held_dues)
--     └─────────┘   └───────────────────────────────┘    └─────────┘
--          ▲                                                  │
--          └── report: due by its frequency · release: due as before · lease ended: due as before, or a back-off ──┘
--
-- * A live page has one row in queue, one row in new_page, or one inbox entry that will make that row.
-- * queue and new_page change only under the lock of the host's row. All others write to inbox, which locks no host.
-- * next_pages moves a new page into queue when it hands it out. new_page holds only pages that were never handed out.
--
-- An inbox entry says from where to where. The columns that are not null say which kind it is:
--
--     old_due   old_rank   new_due   new_rank   revived
--     ─         ─          given     ─          ─        a page comes in that is due at a time
--     ─         ─          ─         given      ─        a page comes in as a new page
--     given     ─          given     ─          ─        a page in queue gets another due time
--     ─         given      ─         given      ─        a new page gets another value
--     ─         given      given     ─          ─        a new page moves into queue (fetch_now)
--     one of them          ─         ─          ─        a dead page leaves
--     ─         ─          given     ─          true     a dead page lives again: it enters unless it has a place
--
-- An entry whose old place holds no such page does nothing: the page was handed out since, and its report will follow.

-- No primary key: a pop took a quarter longer with one (PostgreSQL 18). A row is found by (host, due, page).
create table recrawl_internal.queue (
    host_id bigint      not null,
    due_at  timestamptz not null,
    page_id bigint      not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index queue_due on recrawl_internal.queue (host_id, due_at);
alter table recrawl_internal.queue replica identity full;    -- as for host
comment on table recrawl_internal.queue is
    'The due time of each page that was handed out before. A row changes only while the row of its host is locked.';
comment on column recrawl_internal.queue.host_id is 'The host of the page.';
comment on column recrawl_internal.queue.due_at is
    'The time when the page is due. While the page is leased, due_at is later than the end of the lease.';
comment on column recrawl_internal.queue.page_id is 'The page.';

create table recrawl_internal.new_page (
    host_id bigint not null,
    page_id bigint not null,
    rank    real   not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index new_page_rank on recrawl_internal.new_page (host_id, rank, page_id);
alter table recrawl_internal.new_page replica identity full;
comment on table recrawl_internal.new_page is
    'Pages that were never handed out, the most valuable first. A row changes only while the row of its host is '
    'locked.';
comment on column recrawl_internal.new_page.host_id is 'The host of the page.';
comment on column recrawl_internal.new_page.page_id is
    'The page. Among pages with equal rank, the page that was found first comes first.';
comment on column recrawl_internal.new_page.rank is
    'The value of the page with a minus sign, so that the index is read in ascending order.';

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
alter table recrawl_internal.inbox replica identity full;
comment on table recrawl_internal.inbox is
    'Changes that wait to be made in queue and new_page. An entry is written without a lock on the host. Upkeep '
    'makes the changes in order, while it holds the locks of the hosts.';
comment on column recrawl_internal.inbox.at is 'The clock time of writing.';
comment on column recrawl_internal.inbox.host_id is 'The host of the page.';
comment on column recrawl_internal.inbox.page_id is 'The page.';
comment on column recrawl_internal.inbox.old_due is 'The due time of the page in queue; null = it is not in queue.';
comment on column recrawl_internal.inbox.new_due is
    'The new due time of the page in queue; null = the page leaves queue.';
comment on column recrawl_internal.inbox.old_rank is 'The rank of the page in new_page; null = it is not in new_page.';
comment on column recrawl_internal.inbox.new_rank is
    'The new rank of the page in new_page; null = the page leaves new_page.';
comment on column recrawl_internal.inbox.failed is 'True if a request failed and the host may be the reason.';
comment on column recrawl_internal.inbox.revived is
    'True if a page that was not live is live again. It enters queue only if it has no row there.';

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
alter table recrawl_internal.link_later replica identity full;
comment on table recrawl_internal.link_later is
    'Links to pages that another open transaction was adding. Upkeep adds the links later.';
comment on column recrawl_internal.link_later.at is 'The clock time of writing.';
comment on column recrawl_internal.link_later.page_id is 'The page that has the link; null = the page redirects there.';
comment on column recrawl_internal.link_later.key is 'The key of the page that the link leads to.';
comment on column recrawl_internal.link_later.url is 'The URL that the link leads to, as reported.';
comment on column recrawl_internal.link_later.worth is 'The value that the page gets if it is new.';
comment on column recrawl_internal.link_later.depth is 'The number of links from the start of the crawl.';
comment on column recrawl_internal.link_later.tries is
    'How often upkeep found the page still locked. Once upkeep has found it locked, reports no longer wait for the '
    'page.';

create sequence recrawl_internal.lease_id;
comment on sequence recrawl_internal.lease_id is
    'Ids of leases, one per call of next_pages. The id also drives the draws of a pop, so that they spread evenly.';

-- The life of a lease:
--
--     next_pages ──▶ leased, until lease_until ──▶ the row is deleted: no page of it is unreported any more
--                          ▲ │
--                          │ ├── report      the page gets the due time of its next fetch
--            extend_lease ─┘ ├── release     the page gets its old due time back (dues)
--                            └── reap        lease_until has passed: the unreported pages get their old due times
--                                            back, or a due time after a back-off if that happened to them before
--
-- While a page is leased, its row in queue has the due time of held_dues, which the lease cannot reach. So no call of
-- next_pages finds it, and no scan must look whether a due page is leased. extend_lease moves these due times too.

-- Arrays up to 8 kB stay in the row. In the TOAST table two arrays would cost each pop two more index entries.
create table recrawl_internal.lease (
    lease_id    bigint        not null,
    round       int           not null,
    handed_out_at   timestamptz   not null,
    lease_until timestamptz   not null,
    unreported  int           not null,
    new_pages   int           not null default 0,
    page_ids    bigint[]      not null,
    slots       timestamptz[] not null,
    start_bys   timestamptz[] not null,
    dues        timestamptz[] not null,
    held_dues   timestamptz[] not null,
    busy_hosts  bigint[],
    login       text          not null default session_user,
    primary key (lease_id, round)
) with (
    toast_tuple_target = 8160,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
create index lease_until on recrawl_internal.lease (lease_until);
comment on table recrawl_internal.lease is
    'Leased pages: one row for each round of a call of next_pages. A second round follows if the hosts of the first '
    'round gave too few pages. The row is deleted when its last page is reported.';
comment on column recrawl_internal.lease.lease_id is 'The lease. Each call of next_pages has one.';
comment on column recrawl_internal.lease.round is 'The number of the round within the call. Most calls have one round.';
comment on column recrawl_internal.lease.handed_out_at is 'When the pages were handed out.';
comment on column recrawl_internal.lease.lease_until is
    'The end of the lease. Then unreported pages go back to the queue.';
comment on column recrawl_internal.lease.unreported is 'The number of its pages that are not reported yet.';
comment on column recrawl_internal.lease.new_pages is 'The number of its pages that were new.';
comment on column recrawl_internal.lease.page_ids is 'The pages, in order of id.';
comment on column recrawl_internal.lease.slots is 'fetch_at of each page.';
comment on column recrawl_internal.lease.start_bys is 'start_by of each page.';
comment on column recrawl_internal.lease.dues is
    'The due time of each page before it was handed out. An unreported page gets it back.';
comment on column recrawl_internal.lease.held_dues is 'The due time of each page in queue while the page is leased.';
comment on column recrawl_internal.lease.busy_hosts is 'The hosts of these pages that are one_at_a_time.';
comment on column recrawl_internal.lease.login is 'The login that called next_pages.';
