-- Pages: what is known of each URL. The place of a page in the queue is in queue.sql.

create sequence recrawl_internal.page_id;
comment on sequence recrawl_internal.page_id is 'Ids of pages. A gap means that an insert was rolled back.';

-- Each report updates one row, without a change of an index (HOT): no column that a report changes is indexed.
-- Fixed width first, because these columns are read most. In the last lines of each kind are columns that are null
-- unless the page is a special case. A null takes no room.
create table recrawl_internal.page (
    page_id          bigint      primary key,
    key              uuid        not null unique,
    host_id          bigint      not null,
    due_at           timestamptz,
    added_at         timestamptz,
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
    successes        int         not null default 0,
    changes          int         not null default 0,
    attempts         smallint    not null default 0,
    depth            smallint    not null default 0,
    last_status      smallint,
    is_denied        boolean,
    boost            real,
    pinned_interval  interval
                     constraint "pinned_interval must be positive"
                     check (pinned_interval > '0'),
    base_at          timestamptz,
    planned_due      timestamptz,

    state            text        not null default 'live'
                     constraint "state must be one of"
                     check (state in ('live', 'gone', 'moved', 'excluded', 'kept_out')),
    url              text        not null,
    etag             text,
    last_modified    timestamptz,
    content_hash     text,
    sketch           int[],
    meta             jsonb,
    due_is           text
                     constraint "due_is must be one of"
                     check (due_is in ('set', 'done', 'declined'))
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- Allocation leaves pages with a pinned rate out of the new pages. Without this index it would read the whole table.
create index page_with_pinned_rate on recrawl_internal.page (page_id) where pinned_rate is not null;
comment on table recrawl_internal.page is 'A page: a URL, and everything that recrawl knows of it.';
comment on column recrawl_internal.page.page_id is
    'Id from the sequence page_id. The top bits stay free for a shard number.';
comment on column recrawl_internal.page.key is
    'The identity of the page: the first 128 bits of the sha256 of its canonical URL.';
comment on column recrawl_internal.page.host_id is 'The host of the page. It never changes.';
comment on column recrawl_internal.page.due_at is
    'The time when the page is due, as its newest inbox entry says. The table queue gets this time when upkeep '
    'applies the inbox. null = the page waits among the new pages.';
comment on column recrawl_internal.page.added_at is 'The time when the page was added.';
comment on column recrawl_internal.page.fetched_at is 'The time of the last successful fetch.';
comment on column recrawl_internal.page.reported_at is 'The time of the last report, with any outcome.';
comment on column recrawl_internal.page.last_lease is
    'The newest lease on which the page was reported in time. Lease ids ascend. If a lease with a higher id contains '
    'the page, the page is leased now.';
comment on column recrawl_internal.page.stale_lease is
    'The newest lease on which the page was reported too late. A late report counts as an observation only once.';
comment on column recrawl_internal.page.moved_to is
    'The target, if this page redirects permanently.';
comment on column recrawl_internal.page.value is
    'How much a fresh copy is worth, boosts included; 1 is the average. It is pinned or computed by the job opic. At '
    'first it is a part of the value of the page that linked here.';
comment on column recrawl_internal.page.pinned_value is
    'A value that add_pages or set_value gave; null = the value is computed.';
comment on column recrawl_internal.page.frequency is
    'Fetches per day from which due_at was computed. The present frequency can be different: it is computed from the '
    'price of the host. null = the pinned rate, or without one the setting frequency.';
comment on column recrawl_internal.page.pinned_rate is
    'Changes per day that add_pages or set_rate gave; null = recrawl learns the rate.';
comment on column recrawl_internal.page.seen_changes is
    'With seen_days: the evidence from the fetches of this page. recrawl adds the two numbers to the prior of the '
    'host. The sums are the parameters of the Gamma distribution of the rate.';
comment on column recrawl_internal.page.seen_days is 'The number of days for seen_changes.';
comment on column recrawl_internal.page.relevance is
    'How well it fits your subject, 0 to 1, as last reported. null = unknown, which counts as 0.5.';
comment on column recrawl_internal.page.pinned_relevance is
    'A relevance that set_relevance gave; null = the reported one counts.';
comment on column recrawl_internal.page.successes is 'The number of successful fetches.';
comment on column recrawl_internal.page.changes is 'The number of changes that these fetches found.';
comment on column recrawl_internal.page.attempts is
    'The number of attempts in a row that failed or were never reported.';
comment on column recrawl_internal.page.depth is 'The number of links from the start of the crawl to the page.';
comment on column recrawl_internal.page.last_status is
    'HTTP status of the last report; 0 or a negative number = there was no answer.';
comment on column recrawl_internal.page.is_denied is 'True if robots.txt forbids it, as last reported; otherwise null.';
comment on column recrawl_internal.page.boost is
    'The product of all boosts that match the URL; null = no boost matches.';
comment on column recrawl_internal.page.pinned_interval is
    'Time between two fetches that set_interval gave; null = recrawl decides.';
comment on column recrawl_internal.page.base_at is
    'The time of an older fetch. The next fetch is compared with it, because all fetches since then brought nothing '
    'to compare. etag, last_modified, content_hash and sketch belong to this fetch. null = the last fetch.';
comment on column recrawl_internal.page.planned_due is
    'The due time before a hint or fetch_now changed it; null = nothing has changed it since the last fetch.';
comment on column recrawl_internal.page.state is
    'live: the page is in the queue. gone (410), moved (301, 308), excluded (by a pattern) and kept_out pages are '
    'kept, so that links do not add them again.';
comment on column recrawl_internal.page.url is 'The URL that is requested, as first given, without fragment.';
comment on column recrawl_internal.page.etag is 'Etag of the fetch that the next one is compared with.';
comment on column recrawl_internal.page.last_modified is
    'Last-Modified of the fetch that the next one is compared with.';
comment on column recrawl_internal.page.content_hash is
    'Hash of the fetch that the next one is compared with, as the crawler reported it.';
comment on column recrawl_internal.page.sketch is
    'Sketch of the fetch that the next one is compared with: eight numbers that stand for the text.';
comment on column recrawl_internal.page.meta is 'Any JSON of the user. next_pages returns it.';
comment on column recrawl_internal.page.due_is is
    'The reason for due_at. set: a crawler gave the time. done, declined: the page is never due. null: the time '
    'follows from the frequency.';

create table recrawl_internal.exclusion (
    pattern     text        primary key,
    excluded_at timestamptz not null
);
comment on table recrawl_internal.exclusion is
    'Excluded patterns. A URL whose canonical form matches one of them stays out of the crawl.';
comment on column recrawl_internal.exclusion.pattern is
    'POSIX regular expression. It is compared with the canonical URL.';
comment on column recrawl_internal.exclusion.excluded_at is 'The time when exclude() was called.';

create table recrawl_internal.boost (
    pattern     text        primary key,
    factor      real,
    since       timestamptz not null,
    done_to     bigint,
    last_page   bigint,
    pages       bigint      not null default 0,
    in_force_at timestamptz
);
comment on table recrawl_internal.boost is
    'Patterns with a factor. The value of a page is multiplied by the factor if its canonical URL matches.';
comment on column recrawl_internal.boost.pattern is 'POSIX regular expression. It is compared with the canonical URL.';
comment on column recrawl_internal.boost.factor is
    'The factor; null = the boost was ended, and its pages are about to get their own values back.';
comment on column recrawl_internal.boost.since is 'The time when boost() was called.';
comment on column recrawl_internal.boost.done_to is
    'Pages with an id up to this one already have the boost; null = the work has not begun.';
comment on column recrawl_internal.boost.last_page is
    'Pages with a higher id than this one got the boost when they were added.';
comment on column recrawl_internal.boost.pages is
    'Live pages that match, of the pages that existed when boost() was called.';
comment on column recrawl_internal.boost.in_force_at is 'The time when all pages had the boost; null = not yet.';
