-- The common part of report and report_pages:
--
--   1. Find or make the pages that the results link and redirect to.
--   2. Lock the leases.
--   3. Judge the results and update their pages. New due times reach the queue through the inbox.
--   4. Store the links.
--   5. Update the hosts that must change immediately: after 429, a late request or a new crawl delay, or if a host is
--      free again. Other hosts are not locked.
--
-- Lock order: keys of unknown links, lease, page by id, link by page id, host by id.

-- One pass over results. It is optimistic: if another transaction changes a page after it was judged and before it is
-- written, the page is left out, and the caller tries it again.
create or replace function recrawl_internal.record_pass(
    t timestamptz, pending recrawl_internal.result[], fenced bigint[], redirects bigint[], any_lease boolean,
    newest_lease bigint, s recrawl_internal.setting, common recrawl_internal.host_terms,
    out answers recrawl.report_result[],
    out with_links int[],              -- ords of results that counted as a fetch and brought links
    out graph_news bigint[],           -- pages that changed for the graph
    out hosts bigint[],                -- hosts of the pages
    out well bigint[],                 -- hosts that gave a page
    out news recrawl_internal.host_news[],
    out reports bigint[],              -- rows of three: lease, round, number of its pages that were reported
    out letters text,                  -- for pulse
    out late real[],
    out lost float8
)
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited; writes page, inbox, fetch_log, pulse; locks page by id
#variable_conflict use_column
begin
    with
    -- The results with everything that follows from them.
    judged as materialized (
        select *
        from judged_results(t, pending, fenced, redirects, any_lease, newest_lease, s, common)
        order by page_id
    ),
    -- The updated pages.
    written as (
        update page p set
            reported_at = case when j.outcome = 'declined' then p.reported_at else t end,
            last_status = case when j.outcome = 'declined' then p.last_status else j.status end,
            is_denied = case when j.outcome = 'declined' then p.is_denied else nullif(j.outcome = 'denied', false) end,
            last_lease = case when j.is_held then j.lease_id else p.last_lease end,
            stale_lease = case when j.code = 'stale_lease' then j.lease_id else p.stale_lease end,
            due_at = case when j.moves then j.new_due else p.due_at end,
            due_is = case when j.moves then j.due_is else p.due_is end,
            attempts = case when j.outcome in ('fetched', 'denied') then 0
                            when j.is_held and j.outcome in ('missing', 'failed', 'throttled')
                                then least(p.attempts + 1, 30000)
                            else p.attempts end,
            state = case when j.code = 'ok' and p.state = 'live' and j.outcome in ('gone', 'moved') then j.outcome
                         else p.state end,
            moved_to = case when j.code = 'ok' and j.outcome = 'moved' then redirects[j.ord] else p.moved_to end,
            fetched_at = case when j.is_observed then j.seen_at else p.fetched_at end,
            fetches = p.fetches + j.is_observed::int,
            changes = least(p.changes + case when j.is_observed then j.more_changes else 0 end::bigint, 2147483647),
            seen_changes = coalesce(j.seen_changes, p.seen_changes),
            seen_days = coalesce(j.seen_days, p.seen_days),
            frequency = case when j.is_observed then j.new_frequency else p.frequency end,
            base_at = case when j.is_observed then j.base_at else p.base_at end,
            planned_due = case when not j.is_observed then p.planned_due end,
            etag = case when j.is_observed then j.etag else p.etag end,
            last_modified = case when j.is_observed then j.last_modified else p.last_modified end,
            content_hash = case when j.is_observed then j.content_hash else p.content_hash end,
            sketch = case when j.is_observed then j.sketch else p.sketch end,
            relevance = coalesce(j.relevance, p.relevance),
            meta = coalesce(j.meta, p.meta)
        from judged j
        where p.ctid = j.tid and p.xmin = j.version and j.counts
        returning j.ord, p.page_id, p.host_id, j.code, j.outcome, j.is_held, j.is_observed, j.lease_id, j.round,
                  j.moves, j.old_due, j.old_rank, j.seen_at, j.days, j.more_changes, j.link_count, j.news,
                  j.letter, j.late, j.periods_lost, j.seen_days is not null as has_taught,
                  case when p.state = 'live' then p.due_at end as next_due,
                  p.state <> 'forgotten' as is_known,
                  p.state <> j.state or j.has_new_relevance as is_graph_news
    ),
    -- The inbox gets only due times that differ from the due time that next_pages assumed.
    told as (
        insert into inbox (host_id, page_id, old_due, old_rank, new_due, failed)
        select host_id, page_id, old_due, old_rank, next_due, is_held and outcome = 'failed'
        from written
        where moves and next_due is distinct from old_due
    ),
    -- Fetches that taught something about the rate.
    logged as (
        insert into fetch_log (part, page_id, at, days, changed)
        select log_part(t, s.keep_log), page_id, seen_at, days, more_changes > 0
        from written
        where s.keep_log is not null and is_observed and has_taught
    ),
    -- One row for each page that was written, and for each result that never counts.
    answered as (
        select ord, page_id, code,
               case when code = 'stale_lease' then 'the lease does not hold the page; it counts as an observation'
                    when link_count > most_links()
                        then format('the first %s of its %s links were taken', most_links(), link_count) end as detail,
               case when not is_never(next_due) then greatest(next_due, t) end as next_fetch_at,
               is_observed and is_known and link_count is not null as brought_links,
               is_graph_news, host_id, outcome, news, letter, late, periods_lost
        from written
        union all
        select ord, page_id, code,
               case code
                   when 'invalid' then problem
                   when 'unknown_page' then format('there is no page %s', coalesce(page_id::text, left(url, 200)))
                   when 'duplicate' then 'it was reported before'
                   when 'stale_lease' then format('lease %s does not hold the page', lease_id)
               end,
               case when state = 'live' and not is_never(due_at) then greatest(due_at, t) end, false, false, null, null,
               case when code = 'stale_lease' then news end, letter, late, periods_lost
        from judged
        where not counts
    )
    select array_agg((ord, page_id, code, detail, next_fetch_at, null)::recrawl.report_result),
           array_agg(ord) filter (where brought_links),
           array_agg(page_id) filter (where is_graph_news),
           array_agg(distinct host_id) filter (where host_id is not null),
           array_agg(distinct host_id) filter (where outcome = 'fetched'),
           array_agg(a.news) filter (where not (a.news is null)),
           (select array_agg(array[lease_id, round, pages])
            from (select lease_id, round, count(*) as pages from written where is_held group by lease_id, round) w),
           string_agg(letter, ''), array_agg(late) filter (where late is not null),
           sum(periods_lost) filter (where periods_lost > 0)
    into answers, with_links, graph_news, hosts, well, news, reports, letters, late, lost
    from answered a;
    -- Only if a worker ran in the last day: nothing else sums up the rows of pulse.
    insert into pulse (part, at, letters, late, lost)
    select log_part(t, pulse_kept()), t, letters, late, lost
    from worker_ticked w
    where letters is not null and from_micros(w.last_value) > clock_timestamp() - interval '1 day';
end $$;
comment on function recrawl_internal.record_pass(
    timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
    bigint, recrawl_internal.setting, recrawl_internal.host_terms
) is
    'Judges results and updates their pages. Returns the answers, and the news for hosts, leases and the graph.';

-- A due time can lie in the year 2200, so it ends a page too.
create or replace function recrawl_internal.without_ends(results recrawl_internal.result[])
returns recrawl_internal.result[]
language sql stable
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
    select array_agg(case
        when r.lease_id is null and r.problem is null
             and (r.status = 410 or r.redirect_to is not null or r.due_is is not null)
        then jsonb_populate_record(r::result, jsonb_build_object(
            'problem', 'a report without lease_id must not end a page: the setting ends_without_lease is false'))
        else r::result end order by r.ord)
    from unnest(results) r
$$;
comment on function recrawl_internal.without_ends(recrawl_internal.result[]) is
    'The results; those that have no lease and would end a page get a problem.';

create or replace function recrawl_internal.record_results(t timestamptz, results recrawl_internal.result[])
returns setof recrawl.report_result
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: hashes; writes lease; locks exclusion (shared), new keys, lease, page by id, link by id, host by id
declare
    s            setting;
    common       host_terms;
    newest_lease constant bigint := (select last_value from lease_id);
    pending      result[] := results;
    led_to       found_links[];
    fenced       bigint[];             -- leases that this transaction has locked
    redirects    bigint[];             -- by ord: the page that a permanent redirect leads to
    said         record;               -- flags: whether any result, or any of the hosts, has a property
    unused       slot_of_host[];       -- slots of declined pages
    this         record;               -- the output of a pass
    passes       int := 0;
    reports      bigint[];             -- rows of three: lease, round, number of its pages that were reported
    answers      recrawl.report_result[] := '{}';
    with_links   int[] := '{}';
    hosts        bigint[] := '{}';
    well         bigint[] := '{}';     -- hosts that gave a page
    news         host_news[] := '{}';
begin
    select * into s from setting;
    select * into common from host_terms where host_id = 0;
    if not s.ends_without_lease then
        results := without_ends(results);
        pending := results;
    end if;
    select bool_or(r.links is not null or r.redirect_to is not null) as links,
           bool_or(r.due_is = 'declined') as declined
    into said
    from unnest(results) r;
    if said.links then
        led_to := intern_links(t, results);
    end if;

    -- The transaction that has locked the row of a lease decides whether the lease has ended. The lock is a statement
    -- of its own, so that the next statement sees what the last transaction with the lock did.
    fenced := array(
        select l.lease_id
        from (select distinct r.lease_id from unnest(results) r order by r.lease_id) r
        cross join lateral (
            select l.lease_id from lease l where l.lease_id = r.lease_id order by l.round for update) l);
    if said.declined then
        unused := slots_of_declined(t, results);
    end if;

    if exists (select from unnest(led_to) f where f.moved_to is not null) then
        redirects := resolved_redirects(led_to, array(select r.page_id from unnest(results) r));
    elsif (select count(r.page_id) > count(distinct r.page_id) from unnest(results) r) then
        -- A page with several results may need several passes. Without this the passes would not lock in order of id.
        perform from page p
        where p.page_id = any (array(select r.page_id from unnest(results) r))
        order by p.page_id
        for no key update;
    end if;

    while cardinality(pending) > 0 loop
        passes := passes + 1;
        this := record_pass(t, pending, fenced, redirects, passes > 10, newest_lease, s, common);
        -- One by one. With a join, PostgreSQL would scan all of lease, with its dead rows, because it takes the table
        -- to be small.
        reports := this.reports;
        for i in 1 .. coalesce(array_length(reports, 1), 0) loop
            delete from lease
            where lease_id = reports[i][1] and round = reports[i][2] and unreported <= reports[i][3];
            if not found then
                update lease set unreported = unreported - reports[i][3]
                where lease_id = reports[i][1] and round = reports[i][2];
            end if;
        end loop;
        perform tell_graph(this.graph_news) where this.graph_news is not null;
        answers := answers || this.answers;
        with_links := with_links || this.with_links;
        hosts := hosts || this.hosts;
        well := well || this.well;
        news := news || this.news;
        exit when cardinality(this.answers) = cardinality(pending);
        pending := array(
            select r from unnest(pending) r
            where (r.ord in (select a.ord from unnest(this.answers) a)) is not true);
    end loop;

    if cardinality(with_links) > 0 then
        perform replace_links(led_to, with_links);
    end if;
    if cardinality(news) > 0 then
        perform tell_hosts(t, news);
    end if;
    if unused is not null then
        perform give_back(t, null, array(select distinct host_id from unnest(unused)), unused);
    end if;
    select bool_or(h.blocked_until > t) as are_held, bool_or(h.strikes > 0) as are_struck into said
    from host h
    where h.host_id = any (hosts);
    if said.are_struck then
        perform forgive_strike(t, well);
    end if;
    if said.are_held then
        answers := answers_with_holds(t, answers);
    end if;
    return query select a.* from unnest(answers) a order by a.ord;
end $$;
comment on function recrawl_internal.record_results(timestamptz, recrawl_internal.result[]) is
    'Judges and records checked results, for report and report_pages.';

-- No page of a blocked host is fetched before the block ends, so next_fetch_at is not earlier than that.
create or replace function recrawl_internal.answers_with_holds(t timestamptz, answers recrawl.report_result[])
returns recrawl.report_result[]
language sql stable
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
    select array_agg((
        a.ord, a.page_id, a.code, a.detail,
        case when a.next_fetch_at is not null then greatest(a.next_fetch_at, h.until) end, h.until
    )::recrawl.report_result)
    from unnest(answers) a
    left join lateral (
        select readable(h.blocked_until) as until from page p join host h on h.host_id = p.host_id
        where p.page_id = a.page_id and h.blocked_until > t
        offset 0
    ) h on true
$$;
comment on function recrawl_internal.answers_with_holds(timestamptz, recrawl.report_result[]) is
    'Adds to the answers until when the hosts of their pages are blocked.';

-- Hosts are locked one after the other, in order of id.
create or replace function recrawl_internal.tell_hosts(t timestamptz, news recrawl_internal.host_news[]) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
declare
    n record;
begin
    for n in
        select host_id, bool_or(throttled) as throttled, max(retry_after) as retry_after, max(status) as status,
               max(late_start) as late_start, max(freed_by) as freed_by, max(crawl_delay) as crawl_delay
        from unnest(news)
        group by host_id
        order by host_id
    loop
        if n.throttled then
            perform strike_host(n.host_id, n.retry_after, format('it answered %s', n.status), t);
        end if;
        if n.late_start is not null then
            perform push_slot(n.host_id, n.late_start, t);
        end if;
        if n.freed_by is not null then
            perform free_host(n.host_id, n.freed_by, t);
        end if;
        if n.crawl_delay is not null then
            perform set_crawl_delay(n.host_id, n.crawl_delay, t);
        end if;
    end loop;
end $$;
comment on function recrawl_internal.tell_hosts(timestamptz, recrawl_internal.host_news[]) is
    'Updates hosts with the news from reports.';
