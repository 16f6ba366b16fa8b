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
    found_at         timestamptz,
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
    is_denied        boolean,
    boost            real,
    pinned_interval  interval
                     constraint "pinned_interval must be positive"
                     check (pinned_interval > '0'),
    base_at          timestamptz,
    planned_due      timestamptz,

    state            text        not null default 'live'
                     constraint "state must be one of"
                     check (state in ('live', 'gone', 'moved', 'excluded', 'forgotten')),
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
comment on table recrawl_internal.page is 'A page: a URL and all that is known of it.';
comment on column recrawl_internal.page.page_id is
    'From the sequence page_id. The top bits stay free for a shard number.';
comment on column recrawl_internal.page.key is
    'First 128 bits of the sha256 of the canonical URL: the identity of the page.';
comment on column recrawl_internal.page.host_id is 'Its host, which never changes.';
comment on column recrawl_internal.page.due_at is
    'When it is due, as the last inbox entry says. The queue follows, and there is no index from a page to its row in '
    'the queue. null = it waits among the new pages.';
comment on column recrawl_internal.page.found_at is 'When it was taken in.';
comment on column recrawl_internal.page.fetched_at is 'Its last successful fetch.';
comment on column recrawl_internal.page.reported_at is 'Its last report, with any outcome.';
comment on column recrawl_internal.page.last_lease is
    'The newest lease that it was reported on in time. Lease ids of a page ascend, so a lease with a higher id that '
    'contains the page still holds it.';
comment on column recrawl_internal.page.stale_lease is
    'The newest lease that it was reported on too late. Such a report counts as an observation once.';
comment on column recrawl_internal.page.moved_to is 'The page that its permanent redirect leads to.';
comment on column recrawl_internal.page.value is
    'The worth of its freshness, boost included. It is pinned, or computed by the job opic, or at first a part of the '
    'value of the page that linked to it.';
comment on column recrawl_internal.page.pinned_value is 'A value that a person set; null = it is computed.';
comment on column recrawl_internal.page.frequency is
    'Fetches per day that its due time was computed from, at its last report or at the allocation that moved it. The '
    'frequency in force follows from the price of its host. null = the setting frequency.';
comment on column recrawl_internal.page.pinned_rate is
    'Changes per day that a person set; null = the rate is estimated.';
comment on column recrawl_internal.page.seen_changes is
    'With seen_days: the evidence of its own fetches. Its rate is believed to follow the Gamma distribution of the '
    'prior of its host with these numbers added.';
comment on column recrawl_internal.page.seen_days is 'See seen_changes.';
comment on column recrawl_internal.page.relevance is
    'How well it fits the crawl, 0 to 1, as last reported; null = unknown, which counts as one half.';
comment on column recrawl_internal.page.pinned_relevance is 'A relevance that a person set; null = the reported one.';
comment on column recrawl_internal.page.fetches is 'Successful fetches.';
comment on column recrawl_internal.page.changes is 'Changes that these fetches saw.';
comment on column recrawl_internal.page.attempts is 'Attempts in a row that failed or were never reported.';
comment on column recrawl_internal.page.depth is 'Links away from the start of the crawl.';
comment on column recrawl_internal.page.last_status is
    'HTTP status of the last report; 0 or less = there was no answer.';
comment on column recrawl_internal.page.is_denied is 'True if robots.txt forbids it, as last reported; otherwise null.';
comment on column recrawl_internal.page.boost is
    'The product of the boosts that match its URL, which its value is multiplied by; null = no boost matches.';
comment on column recrawl_internal.page.pinned_interval is
    'Time between two fetches that a person set; null = the price of its host decides.';
comment on column recrawl_internal.page.base_at is
    'Fetch time of the version that the next fetch is compared with, if later fetches brought nothing to compare. '
    'etag, last_modified, content_hash and sketch belong to it. null = the last fetch.';
comment on column recrawl_internal.page.planned_due is
    'When it was due before a hint or fetch_now brought it forward; null = nothing did since the last fetch.';
comment on column recrawl_internal.page.state is
    'live pages are in the queue. Pages that are gone (410), moved (301, 308), excluded (by a pattern) or forgotten '
    'are kept so that they do not come back.';
comment on column recrawl_internal.page.url is 'The URL to fetch, as first given, without fragment.';
comment on column recrawl_internal.page.etag is 'Validator of the fetch that the next one is compared with.';
comment on column recrawl_internal.page.last_modified is 'Validator of the fetch that the next one is compared with.';
comment on column recrawl_internal.page.content_hash is
    'Hash of the fetch that the next one is compared with, in any form that the crawler sends.';
comment on column recrawl_internal.page.sketch is 'Min-hash sketch of the fetch that the next one is compared with.';
comment on column recrawl_internal.page.meta is 'Data of the user. It is handed out with the page.';
comment on column recrawl_internal.page.due_is is
    'The meaning of due_at: set = a crawler said when; done or declined = never; null = it follows the frequency.';

create table recrawl_internal.exclusion (
    pattern     text        primary key,
    excluded_at timestamptz not null
);
comment on table recrawl_internal.exclusion is
    'Regular expressions. A page whose canonical URL matches one is kept out.';
comment on column recrawl_internal.exclusion.pattern is 'POSIX regular expression over the canonical URL.';
comment on column recrawl_internal.exclusion.excluded_at is 'When exclude() was called.';

create table recrawl_internal.boost (
    pattern     text        primary key,
    times       real,
    since       timestamptz not null,
    done_to     bigint,
    last_page   bigint,
    pages       bigint      not null default 0,
    in_force_at timestamptz
);
comment on table recrawl_internal.boost is
    'Regular expressions. The value of a page whose canonical URL matches one is multiplied.';
comment on column recrawl_internal.boost.pattern is 'POSIX regular expression over the canonical URL.';
comment on column recrawl_internal.boost.times is
    'The factor; null = the boost was ended, and its pages are about to get their own value back.';
comment on column recrawl_internal.boost.since is 'When it was set.';
comment on column recrawl_internal.boost.done_to is
    'Pages with an id up to this one follow it already; null = the work has not begun.';
comment on column recrawl_internal.boost.last_page is
    'Pages with a higher id than this one followed it from the moment they were taken in.';
comment on column recrawl_internal.boost.pages is 'Live pages that match, of those that existed when it was set.';
comment on column recrawl_internal.boost.in_force_at is 'When all pages followed it; null = not yet.';
