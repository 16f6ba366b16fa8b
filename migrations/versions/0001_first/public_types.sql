-- The rows that functions of the schema recrawl return. A crawler sees them, so a change here is a change of the public
-- face. Row types that only recrawl's own functions use are in sql/, next to these functions.

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
    'One row of next_pages: a page that you lease. Request url between fetch_at and start_by. Then report page_id '
    'with lease_id before lease_until. wait is the time from now to fetch_at.';

create type recrawl.leased_page as (
    page_id     bigint,
    lease_id    bigint,
    lease_until timestamptz
);
comment on type recrawl.leased_page is 'One row of leases_of: a page that is leased, and its lease.';

create type recrawl.blocked_page as (
    lease_id   bigint,
    page_id    bigint,
    host       text,
    blocked_until timestamptz
);
comment on type recrawl.blocked_page is
    'One row of blocked_pages: a leased page whose host is blocked until blocked_until. Do not request the page: '
    'release it.';

create type recrawl.report_result as (
    ord           int,
    page_id       bigint,
    code          text,
    detail        text,
    next_fetch_at timestamptz,
    blocked_until    timestamptz
);
comment on type recrawl.report_result is
    'One row for each reported element, in the same order. code is ok, duplicate, stale_lease, unknown_page or '
    'invalid. blocked_until is set if the host of the page is blocked: request nothing from the host before that time.';

create type recrawl.added_page as (
    ord     int,
    url     text,
    page_id bigint,
    code    text,
    detail  text
);
comment on type recrawl.added_page is
    'One row of add_pages for each URL, in the same order. ord is the place of the URL. code is new, known, excluded '
    'or invalid.';

create type recrawl.steered_page as (
    ord     int,
    page_id bigint,
    code    text,
    detail  text
);
comment on type recrawl.steered_page is
    'One row of set_interval for each page, in the same order. ord is the place of the page. code is ok, not_live, '
    'unknown_page or invalid.';

create type recrawl.slot as (
    fetch_at timestamptz,
    start_by timestamptz,
    wait     interval
);
comment on type recrawl.slot is
    'One row of take_slot: a request to the host may start between fetch_at and start_by. wait is the time from now to '
    'fetch_at.';

create type recrawl.site_robots as (
    ord      int,
    site     text,
    status   int,
    rules    text,
    good_for interval
);
comment on type recrawl.site_robots is
    'One row of robots for each URL whose robots.txt is stored. ord is the place of the URL. rules is the text; null '
    '= everything is allowed. good_for is the time until robots.txt should be fetched again.';

create type recrawl.scored_page as (
    page_id   bigint,
    url       text,
    hub       real,
    authority real,
    relevance real
);
comment on type recrawl.scored_page is
    'A page and its scores in the graph of links. hub and authority are 1 on average; null = the job opic has not run '
    'yet.';

create type recrawl.explanation as (
    topic  text,
    code   text,
    says   text,
    fix    text,
    detail jsonb
);
comment on type recrawl.explanation is
    'One row of explain_page: one fact about a page. topic is the question, code is the answer for programs, and '
    'says is the answer for people. detail has the numbers, with times in UTC. fix is SQL or a command that changes '
    'the fact; null = you need not or cannot change it.';
