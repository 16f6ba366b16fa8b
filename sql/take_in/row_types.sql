-- Rows that the functions of this folder pass to each other. They hold no state: `recrawl migrate` drops a type that
-- changed, with the functions that use it, and makes all of them again.
--
-- judge(): result + page + lease_place ──▶ judgement

do $$
begin
    if to_regtype('given_url') is null then
        create type given_url as (
            url text, value float8, rate float8, due timestamptz, meta jsonb, asked_as text, depth int,
            left_host bigint);
    end if;
    if to_regtype('parsed_url') is null then
        create type parsed_url as (
            ord int, place int, problem text, key uuid, url text, canonical text, host text, asked_as text,
            given given_url);
    end if;
    if to_regtype('made_page') is null then
        create type made_page as (place int, key uuid, page_id bigint, reason text);
    end if;
    if to_regtype('set_aside_link') is null then
        create type set_aside_link as (tid tid, source bigint, page_id bigint, code text, is_locked boolean);
    end if;
    if to_regtype('reported_link') is null then
        create type reported_link as (
            given given_url, ord int, is_redirect boolean, source bigint, is_locked boolean);
    end if;
    if to_regtype('found_links') is null then
        create type found_links as (ord int, page_id bigint, targets bytea, moved_to bigint);
    end if;
    if to_regtype('result_extras') is null then
        create type result_extras as (
            url text, links text[], relevance float8, sketch int[], meta jsonb, due timestamptz, declined boolean,
            robots_denied boolean, redirect_to text, retry_after text, crawl_delay float8);
    end if;
    if to_regtype('result') is null then
        create type result as (
            ord int, problem text, page_id bigint, lease_id bigint, status int, fetched_at timestamptz, changed boolean,
            changes int, etag text, last_modified timestamptz, content_hash text,
            extras result_extras);
    end if;
    if to_regtype('lease_place') is null then
        create type lease_place as (
            round int, handed_out_at timestamptz, slot timestamptz, start_by timestamptz, due timestamptz,
            held_due timestamptz, is_busy boolean);
    end if;
    if to_regtype('judging_rules') is null then
        create type judging_rules as (setting setting, common host_terms, newest_lease bigint);
    end if;
    if to_regtype('verdict') is null then
        create type verdict as (outcome text, code text, seen_at timestamptz, is_on_lease boolean, is_observed boolean);
    end if;
    if to_regtype('page_comparison') is null then
        create type page_comparison as (
            has_changed boolean, counted int, days_since float8, planned_days float8, age_days float8,
            compared_since timestamptz, is_open boolean, is_same boolean);
    end if;
    if to_regtype('evidence') is null then
        create type evidence as (seen_changes real, seen_days real, days real, frequency real);
    end if;
    if to_regtype('page_after') is null then
        create type page_after as (
            state text, moved_to bigint, due_at timestamptz, due_is text, reported_at timestamptz, last_status smallint,
            is_denied boolean, attempts smallint, last_lease bigint, stale_lease bigint, relevance real);
    end if;
    if to_regtype('fetches_after') is null then
        create type fetches_after as (
            fetched_at timestamptz, successes int, changes int, seen_changes real, seen_days real, frequency real,
            base_at timestamptz, planned_due timestamptz, etag text, last_modified timestamptz, content_hash text,
            sketch int[]);
    end if;
    if to_regtype('page_move') is null then
        create type page_move as (
            host_id bigint, page_id bigint, old_due timestamptz, old_rank real, failed boolean);
    end if;
    if to_regtype('host_update') is null then
        create type host_update as (
            host_id bigint, throttled boolean, retry_after interval, status int, late_start timestamptz,
            freed_by bigint, crawl_delay interval);
    end if;
    if to_regtype('observation') is null then
        create type observation as (at timestamptz, days real, changed boolean);
    end if;
    if to_regtype('pulse_part') is null then
        create type pulse_part as (letters text, late real, skipped float8);
    end if;
    if to_regtype('judgement') is null then
        create type judgement as (
            answer recrawl.report_result, is_on_lease boolean, is_observed boolean,
            page_after page_after, fetches_after fetches_after, meta jsonb,
            move page_move, host_update host_update,
            unused_slot slot_of_host, observation observation,
            pulse pulse_part);
    end if;
    if to_regtype('lease_count') is null then
        create type lease_count as (lease_id bigint, round int, pages int);
    end if;
    if to_regtype('locked_lease') is null then
        create type locked_lease as (
            lease_id bigint, round int, handed_out_at timestamptz, lease_until timestamptz, busy_hosts bigint[],
            page_ids bigint[], slots timestamptz[], start_bys timestamptz[], dues timestamptz[],
            held_dues timestamptz[]);
    end if;
    if to_regtype('locked_pages') is null then
        create type locked_pages as (page_ids bigint[], tids tid[]);
    end if;
    if to_regtype('recorded') is null then
        create type recorded as (
            answers recrawl.report_result[], observed int[], hosts bigint[], responding_hosts bigint[],
            host_updates host_update[], left_leases lease_count[], unused_slots slot_of_host[]);
    end if;
end $$;

comment on type given_url is
    'A URL from a caller or from a link, and what is said of its page. asked_as: the argument host of add_pages. The '
    'host name of the URL shares the host of this name; the empty text = it is no host name. depth: the number of '
    'links from the start of the crawl. left_host: the host of a page that moved to this URL permanently.';
comment on type parsed_url is
    'A given URL with its identity, or with the problem that makes it invalid. ord: its number among the given URLs. '
    'place: the number of its page, in order of keys.';
comment on type made_page is
    'A new page, or the reason why there is no page; neither if another transaction made the page first.';
comment on type set_aside_link is
    'A link that was set aside: its row, its linking page, and the page and code that its URL got now.';
comment on type reported_link is
    'A link or a redirect in the result with the number ord. source: the page of the result. is_locked: the URL was '
    'set aside before, and another transaction still had it locked at the last try.';
comment on type found_links is 'Links and redirect of a reported page, as ids of pages.';
comment on type result_extras is 'The keys of an element of report that most elements do not have.';
comment on type result is
    'A reported result after the check. ord: its number in the report. problem: why it is invalid. The other columns, '
    'and the columns of extras, are keys of an element of report.';
comment on type lease_place is 'The place of one page in its lease: its slot and its due times.';
comment on type judging_rules is 'The rules that the judgement of a result depends on, besides its page and its host.';
comment on type verdict is
    'The outcome of a request, the code of the answer, and whether the result ends a lease or is a successful fetch: '
    'see verdict_on().';
comment on type page_comparison is 'How a fetch compares with what is known of its page.';
comment on type evidence is 'The evidence for the rate of a page after a fetch, and the new frequency.';
comment on type page_after is
    'A page after a report: the columns of page that a report without a successful fetch may change too, apart from '
    'meta.';
comment on type fetches_after is 'A page after a report: the columns of page that only a successful fetch changes.';
comment on type page_move is 'An entry of the inbox that moves a page: the columns of the same names.';
comment on type host_update is 'The changes that a result means for its host.';
comment on type observation is 'A row of fetch_log: the columns of the same names.';
comment on type pulse_part is 'The share of one result in a row of pulse: the columns of the same names.';
comment on type judgement is 'Everything that follows from a result. A part is null if it does not apply.';
comment on type lease_count is 'How many pages of a row of lease a report took off it.';
comment on type locked_lease is 'A row of lease that a report has locked: the columns of the same names.';
comment on type locked_pages is 'Pages that a report has locked, in order of id, with the places of their rows.';
comment on type recorded is 'The work that is left after the pages of a report were written.';
