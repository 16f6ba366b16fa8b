-- Joins each result with the row of its page, and with its place in the lease that it names.
--
-- matched_results() and judged_results() are inlined into the plan of record_pass(), so they have no search_path of
-- their own and are not volatile.

create or replace function recrawl_internal.outcome_of(
    status int, robots_denied boolean, target bigint, page_id bigint
) returns text
language sql immutable parallel safe
begin atomic
    select case
        when robots_denied then 'denied'
        when status in (301, 308) then case when target <> page_id then 'moved' else 'missing' end
        when status between 200 and 399 then 'fetched'
        when status = 410 then 'gone'
        when status in (429, 503) then 'throttled'
        when status in (408, 425) then 'failed'
        when status between 400 and 499 then 'missing'
        else 'failed'
    end;
end;
comment on function recrawl_internal.outcome_of(int, boolean, bigint, bigint) is
    'What a status means for the schedule: fetched, moved (permanently), missing, gone, throttled (the host wants '
    'fewer requests), failed (5xx or no answer) or denied (by robots.txt).';

create or replace function recrawl_internal.matched_results(
    t timestamptz, pending recrawl_internal.result[], fenced bigint[], redirects bigint[], any_lease boolean
) returns table (
    -- as reported
    ord int, problem text, page_id bigint, url text, lease_id bigint, status int, fetched_at timestamptz,
    changed boolean, content_hash text, changes int, last_modified timestamptz, etag text, link_count int,
    retry_after interval, crawl_delay interval, meta jsonb, relevance real, sketch int[], said_due timestamptz,
    due_is text, outcome text, nth bigint,
    -- from the row of the page
    tid tid, version xid, host_id bigint, state text, due_at timestamptz, last_lease bigint, stale_lease bigint,
    attempts smallint, was_missing boolean, last_fetched_at timestamptz, base_at timestamptz, planned_due timestamptz,
    last_etag text, last_modification timestamptz, last_hash text, last_sketch int[], last_relevance real,
    value real, pinned_rate real, pinned_interval interval, seen_changes real, seen_days real, frequency real,
    -- from the lease; null if the lease does not have the page
    round int, popped_at timestamptz, slot timestamptz, start_by timestamptz, due timestamptz, held_due timestamptz,
    is_busy boolean
)
language sql stable
begin atomic
    with
    -- The leases that have not ended. `|| '{}'` unpacks the arrays here: large arrays are stored compressed, and would
    -- be unpacked again for each page that is looked up in them.
    held as materialized (
        select l.lease_id, l.round, l.popped_at, l.busy_hosts,
               l.page_ids || '{}' as page_ids, l.slots || '{}' as slots, l.start_bys || '{}' as start_bys,
               l.dues || '{}' as dues, l.held_dues || '{}' as held_dues
        from (select distinct unnest(fenced) as lease_id) f
        cross join lateral (
            select * from recrawl_internal.lease where lease.lease_id = f.lease_id offset 0   -- not by lease_until
        ) l
        where l.lease_until > t
    )
    select r.ord, r.problem, r.page_id, r.url, r.lease_id, r.status, r.fetched_at,
           r.changed, r.content_hash, r.changes, r.last_modified, r.etag, cardinality(r.links),
           r.retry_after, r.crawl_delay, r.meta, r.relevance, r.sketch, r.said_due, r.due_is,
           case when r.due_is = 'declined' then r.due_is
                else recrawl_internal.outcome_of(r.status, r.robots_denied, redirects[r.ord], r.page_id) end,
           r.nth,
           p.tid, p.version, p.host_id, p.state, p.due_at, p.last_lease, p.stale_lease,
           p.attempts, p.was_missing, p.fetched_at, p.base_at, p.planned_due,
           p.etag, p.last_modified, p.content_hash, p.sketch, p.relevance,
           p.value, p.pinned_rate, p.pinned_interval, p.seen_changes, p.seen_days, p.frequency,
           l.round, l.popped_at, l.slots[i.place], l.start_bys[i.place], l.dues[i.place], l.held_dues[i.place],
           p.host_id = any (l.busy_hosts)
    from (select *, row_number() over page_s as nth, first_value(lease_id) over page_s as lease_in_turn
          from unnest(pending)
          window page_s as (partition by page_id, problem is null order by ord)) r
    left join lateral (
        select page.ctid as tid, page.xmin as version, page.host_id, page.state, page.due_at, page.last_lease,
               page.stale_lease, page.attempts,
               recrawl_internal.outcome_of(page.last_status, page.is_denied, null, null) = 'missing' as was_missing,
               page.fetched_at, page.base_at, page.planned_due,
               page.etag, page.last_modified, page.content_hash, page.sketch, page.relevance,
               page.value, page.pinned_rate, page.pinned_interval, page.seen_changes, page.seen_days, page.frequency
        from recrawl_internal.page where page.page_id = r.page_id
        offset 0
    ) p on true
    left join held l on l.lease_id = r.lease_id and l.page_ids[width_bucket(r.page_id, l.page_ids)] = r.page_id
    left join lateral (select width_bucket(r.page_id, l.page_ids) offset 0) as i (place) on true
    -- Results of one page on several leases are judged in several passes: each pass takes the first lease.
    where r.problem is not null or r.page_id is null or r.lease_id is not distinct from r.lease_in_turn or any_lease;
end;
comment on function recrawl_internal.matched_results(
    timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean
) is
    'Results with their pages and leases. If a page has results on several leases, only the results on the first '
    'lease are returned, or all of them with any_lease.';
