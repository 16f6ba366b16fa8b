-- Rows that the functions of this folder pass to each other. judge(): result + page + lease_place ──▶ judgement

select make_type('given_url', '(
    url text, value float8, rate float8, due timestamptz, meta jsonb, asked_as text, depth int,
    moved_from_host bigint)',
    'A URL from a caller or from a link, and what is said of its page. asked_as: the argument host of add_pages, the '
    'name of the host that the URL belongs to; the empty text = it is no host name. depth: the number of links from '
    'the start of the crawl. moved_from_host: the host of a page that moved to this URL permanently.');
select make_type('parsed_url', '(
    ord int, place int, problem text, key uuid, url text, canonical text, host text, asked_as text, given given_url)',
    'A given URL with its identity, or with the problem that makes it invalid. ord: its number among the given URLs. '
    'place: the number of its page, in order of keys.');
select make_type('made_page', '(place int, key uuid, page_id bigint, reason text)',
    'A new page, or the reason why there is no page; neither if another transaction made the page first.');
select make_type('found_page', '(place int, page_id bigint, is_new boolean, reason text)',
    'The page of a URL, or the reason why there is no page.');
select make_type('reported_link', '(given given_url, ord int, is_redirect boolean)',
    'A link or a redirect in the result with the number ord.');
select make_type('found_links', '(ord int, page_id bigint, targets bytea, moved_to bigint)',
    'Links and redirect of a reported page, as ids of pages.');
select make_type('result_extras', '(
    url text, links text[], relevance float8, sketch int[], meta jsonb, due timestamptz, declined boolean,
    robots_denied boolean, redirect_to text, retry_after text, crawl_delay float8)',
    'The keys of an element of report that most elements do not have.');
select make_type('result', '(
    ord int, problem text, page_id bigint, lease_id bigint, status int, fetched_at timestamptz, changed boolean,
    changes int, etag text, last_modified timestamptz, content_hash text, extras result_extras)',
    'A reported result after the check. ord: its number in the report. problem: why it is invalid. The other columns, '
    'and the columns of extras, are keys of an element of report.');
select make_type('lease_place', '(
    round int, handed_out_at timestamptz, slot timestamptz, start_by timestamptz, due timestamptz, held_due timestamptz,
    is_busy boolean)',
    'The place of one page in its lease: its slot and its due times. is_busy: the host is one_at_a_time and waits for '
    'the page.');
select make_type('judging_rules', '(setting setting, common host_terms, newest_lease bigint)',
    'The rules that the judgement of a result depends on, besides its page and its host.');
select make_type('verdict', '(outcome text, code text, seen_at timestamptz, is_on_lease boolean, is_observed boolean)',
    'The outcome of a request, the code of the answer, and whether the result ends a lease or is a successful fetch: '
    'see verdict_on().');
select make_type('page_comparison', '(
    has_changed boolean, counted int, days_since float8, planned_days float8, age_days float8,
    compared_since timestamptz, is_open boolean, is_same boolean)',
    'How a fetch compares with what is known of its page.');
select make_type('evidence', '(seen_changes real, seen_days real, days real, frequency real)',
    'The evidence for the rate of a page after a fetch, and the new frequency.');
select make_type('page_after', '(
    state text, moved_to bigint, due_at timestamptz, due_is text, reported_at timestamptz, last_status smallint,
    is_denied boolean, attempts smallint, last_lease bigint, stale_lease bigint, relevance real)',
    'A page after a report: the columns of page that a report without a successful fetch may change too, apart from '
    'meta.');
select make_type('fetches_after', '(
    fetched_at timestamptz, successes int, changes int, seen_changes real, seen_days real, frequency real,
    base_at timestamptz, planned_due timestamptz, etag text, last_modified timestamptz, content_hash text,
    sketch int[])',
    'A page after a report: the columns of page that only a successful fetch changes.');
select make_type('page_move', '(host_id bigint, page_id bigint, old_due timestamptz, old_rank real, failed boolean)',
    'An entry of the inbox that moves a page: the columns of the same names.');
select make_type('host_update', '(
    host_id bigint, throttled boolean, retry_after interval, status int, late_start timestamptz, freed_by bigint,
    crawl_delay interval)',
    'The changes that a result means for its host.');
select make_type('pulse_part', '(letters text, late real, skipped float8)',
    'The share of one result in a row of pulse: the columns of the same names.');
-- A row with some nulls is in SQL neither null nor not null. So queries see whether a part applies by a column that it
-- always has then: (page_after).state, (move).page_id, (host_update).host_id.
select make_type('judgement', '(
    answer recrawl.report_result, is_on_lease boolean, is_observed boolean, page_after page_after,
    fetches_after fetches_after, meta jsonb, move page_move, host_update host_update, pulse pulse_part)',
    'Everything that follows from a result. A part is null if it does not apply.');
select make_type('lease_count', '(lease_id bigint, round int, pages int)',
    'How many pages of a row of lease a report took off it.');
select make_type('locked_lease', '(
    lease_id bigint, round int, handed_out_at timestamptz, lease_until timestamptz, busy_hosts bigint[],
    page_ids bigint[], slots timestamptz[], start_bys timestamptz[], dues timestamptz[], held_dues timestamptz[])',
    'A row of lease that a report has locked: the columns of the same names.');
select make_type('locked_pages', '(page_ids bigint[], tids tid[])',
    'Pages that a report has locked, in order of id, with the places of their rows.');
select make_type('recorded', '(
    answers recrawl.report_result[], observed int[], hosts bigint[], responding_hosts bigint[],
    host_updates host_update[], left_leases lease_count[])',
    'The work that is left after the pages of a report were written. observed: the results (ord) that are successful '
    'fetches. hosts: the hosts of all results that count. '
    'responding_hosts: the hosts of successful fetches.');
