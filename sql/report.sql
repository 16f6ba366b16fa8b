-- What a crawler found. report() takes JSON apart; record_results() judges each result, updates its page, and tells the queue
-- through the inbox. Hosts are not locked, except those that must be held up at once (429, a late request) or let go.
--
-- Lock order: keys of unknown links, lease, page by id, link by page id, host by id.

-- What one status means for the schedule.
create or replace function recrawl_internal.outcome_of(status int, robots_denied boolean, target bigint, page_id bigint) returns text
language sql immutable parallel safe
as $$
    select case
        when robots_denied then 'denied'
        when status in (301, 308) then case when target <> page_id then 'moved' else 'missing' end
        when status between 200 and 399 then 'fetched'
        when status = 410 then 'gone'
        when status in (429, 503) then 'throttled'
        when status in (408, 425) then 'failed'
        when status between 400 and 499 then 'missing'
        else 'failed'
    end
$$;
comment on function recrawl_internal.outcome_of(int, boolean, bigint, bigint) is
    'fetched, moved (for good), missing, gone, throttled (the host wants less), failed (5xx, no answer) or denied (robots.txt).';

create or replace function recrawl_internal.record_results(t timestamptz, results recrawl_internal.result[]) returns setof recrawl.report_result
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    s            setting;
    elsewhere    host_terms;           -- on hosts that have none of their own
    most_often   float8;               -- fetches per day
    newest_lease constant bigint := (select last_value from lease_id);
    pending      result[] := results;
    fenced       bigint[];             -- leases that no one else can end now
    pass         int := 0;
    led_to       found_links[];
    redirects    bigint[];             -- by ord: where a redirect leads
    observed     int[] := '{}';        -- ord of what counted as a fetch and brought links
    answers      recrawl.report_result[] := '{}';
    news         host_news[] := '{}';
    some_answers recrawl.report_result[];
    some_news    host_news[];
    some_observed int[];
    some_pages   bigint[];             -- that are news for the graph
    some_leases  bigint[];             -- lease, round and how many of its pages were reported
begin
    select * into s from setting;
    select * into elsewhere from host_terms where host_id = 0;
    most_often := 86400 / date_part('epoch', s.shortest_interval);
    if exists (select from unnest(results) r where r.links is not null or r.redirect_to is not null) then
        led_to := intern_links(t, results);
    end if;

    -- The fence: whoever holds the lease's row decides whether it still runs. In a statement of its own, so that the next one
    -- sees what the last holder did.
    fenced := array(
        select l.lease_id
        from (select distinct r.lease_id from unnest(results) r order by r.lease_id) r
        cross join lateral (select l.lease_id from lease l where l.lease_id = r.lease_id order by l.round for update) l);

    if exists (select from unnest(led_to) f where f.moved_to is not null) then
        redirects := resolved_redirects(led_to, array(select r.page_id from unnest(results) r));
    elsif (select count(r.page_id) > count(distinct r.page_id) from unnest(results) r) then
        -- Judged in several passes, they would be locked out of order.
        perform from page p where p.page_id = any (array(select r.page_id from unnest(results) r)) order by p.page_id for no key update;
    end if;

    -- Optimistic: a page that somebody changes between being judged and being written is judged again.
    while cardinality(pending) > 0 loop
        pass := pass + 1;
        with held as materialized (
            select l.lease_id, l.round, l.popped_at, l.busy_hosts,
                   -- Unpacked here: a large lease is stored compressed, and would be unpacked again for every page that is looked up.
                   l.page_ids || '{}' as page_ids, l.slots || '{}' as slots, l.dues || '{}' as dues, l.held_dues || '{}' as held_dues
            from (select distinct unnest(fenced) as lease_id) f
            cross join lateral (select * from lease l where l.lease_id = f.lease_id offset 0) l   -- by its id, not by lease_until
            where l.lease_until > record_results.t
        ),
        item as (
            select r.*, p.tid, p.version, p.host_id, p.state, p.due_at, p.last_lease, p.stale_lease, p.attempts,
                   p.fetched_at as last_fetched_at, p.content_hash as last_hash, p.sketch as last_sketch, p.relevance as last_relevance, p.value, p.rate, p.seen_changes, p.seen_days, p.frequency,
                   l.round, l.popped_at, l.slots[i.place] as slot, l.dues[i.place] as due, l.held_dues[i.place] as held_due,
                   p.host_id = any (l.busy_hosts) as is_busy,
                   outcome_of(r.status, r.robots_denied, redirects[r.ord], r.page_id) as outcome
            from (select *, row_number() over page_s as nth, first_value(lease_id) over page_s as lease_in_turn
                  from unnest(pending)
                  window page_s as (partition by page_id, problem is null order by ord)) r
            left join lateral (
                select p.ctid as tid, p.xmin as version, p.host_id, p.state, p.due_at, p.last_lease, p.stale_lease, p.attempts, p.fetched_at,
                       p.content_hash, p.sketch, p.relevance, p.value, p.rate, p.seen_changes, p.seen_days, p.frequency
                from page p where p.page_id = r.page_id offset 0
            ) p on true
            left join held l on l.lease_id = r.lease_id and l.page_ids[width_bucket(r.page_id, l.page_ids)] = r.page_id
            left join lateral (select width_bucket(r.page_id, l.page_ids) offset 0) as i (place) on true
            -- A page's results on several leases are judged one after the other, as far as ten.
            where r.problem is not null or r.page_id is null or r.lease_id is not distinct from r.lease_in_turn or pass > 10
        ),
        coded as (
            select i.*,
                   case
                       when problem is not null then 'invalid'
                       when tid is null then 'unknown_page'
                       when nth > 1 or lease_id in (last_lease, stale_lease) or lease_id is null and fetched_at <= last_fetched_at then 'duplicate'
                       when lease_id < last_lease and slot is not null then 'duplicate'
                       when lease_id is not null and slot is null then 'stale_lease'
                       else 'ok'
                   end as code,
                   -- When nothing is said, a leased page was fetched in its slot; in any case not before it was handed out, or
                   -- before what is known already.
                   greatest(least(coalesce(fetched_at, slot, record_results.t), record_results.t), popped_at, case when slot is not null then last_fetched_at end) as seen_at
            from item i
        ),
        seen as (
            select c.*,
                   code = 'ok' and slot is not null as is_held,
                   -- A stale report is an observation all the same, unless a newer one came first or nobody ever got that lease.
                   outcome = 'fetched' and (code = 'ok'
                       or code = 'stale_lease' and lease_id > greatest(last_lease, stale_lease, 0) and lease_id <= newest_lease
                          and (fetched_at is null or last_fetched_at is null or fetched_at > last_fetched_at)) as is_observed,
                   fetched_at > coalesce(slot + s.start_within, '-infinity') as is_late,
                   -- The first fetch sets the base: there is nothing yet that it could have changed from.
                   date_part('epoch', seen_at - last_fetched_at) / 86400 as days,
                   case when status <> 304 then changes end as counted,
                   case when status = 304 then false else coalesce(changed, sketch <> last_sketch, content_hash <> last_hash, case when is_dated then last_modified > last_fetched_at end) end as has_changed,
                   case when is_dated and last_modified > last_fetched_at then date_part('epoch', seen_at - last_modified) / 86400 end as age_days
            from (select *, last_modified < seen_at - interval '2 seconds' as is_dated from coded) c   -- else the server says of every answer that it is new
            offset 0                   -- worked out once, not wherever it is used
        ),
        -- What it teaches about the page's rate.
        taught as (
            select n.*, own.price as own_price, own.ties as own_ties, coalesce(own.floor, elsewhere.floor) as floor, prior.changes as prior_changes, prior.days as prior_days,
                   l.seen_changes::real as more_changes, l.seen_days::real as more_days
            from seen n
            left join lateral (select * from host_terms h where h.host_id = n.host_id and n.is_observed offset 0) own on true
            cross join lateral (
                select coalesce(own.prior_changes, elsewhere.prior_changes) as changes, coalesce(own.prior_days, elsewhere.prior_days) as days
            ) prior
            left join lateral learnt(
                n.seen_changes, n.seen_days, prior.changes, prior.days, case when n.is_observed then n.days end, n.counted, n.has_changed, n.age_days
            ) l on true
            offset 0
        ),
        -- How often it is fetched from now on.
        observed as (
            select n.*,
                   case when not n.is_observed or coalesce(n.own_price, elsewhere.price) is null then n.frequency
                        else (select greatest(least(most_often, greatest(n.floor, f.frequency), 86400), 1e-4)::real
                              from (select coalesce(n.rate, ((n.prior_changes + coalesce(n.more_changes, n.seen_changes))
                                                             / (n.prior_days + coalesce(n.more_days, n.seen_days)))::real) as rate offset 0) r,
                                   frequency_at(coalesce(n.own_price, elsewhere.price), case when n.own_price is null then elsewhere.ties else n.own_ties end,
                                                n.value, r.rate, elsewhere.objective) f)
                   end as new_frequency
            from taught n
            offset 0
        ),
        judged as materialized (
            select ord, tid, version, page_id, lease_id, round, held_due, seen_at, days, is_held, is_observed,
                   code = 'ok' or is_observed as counts, status, outcome, code,
                   case when days is not null then coalesce(counted, has_changed::int, 0) else 0 end as more_counted,
                   more_changes as seen_changes, more_days as seen_days, new_frequency,
                   case outcome
                       when 'fetched' then next_due(due, slot, page_frequency(new_frequency, rate, s.frequency))
                       when 'denied' then record_results.t + interval '7 days'
                       when 'throttled' then due         -- at once, when its host is
                       when 'missing' then record_results.t + backoff('1 day', '90 days', attempts)
                       when 'failed' then case when attempts + 1 < s.max_attempts
                                               then record_results.t + backoff('1 minute', '1 day', attempts)
                                               else record_results.t + backoff('30 days', '30 days', 0) end
                   end as new_due,
                   last_modified, content_hash, sketch, relevance, relevance <> coalesce(last_relevance, -1) as has_new_relevance, etag, meta, problem, url, state, due_at, cardinality(links) as link_count,
                   case when outcome = 'throttled' or is_busy or is_late or crawl_delay is not null then
                       (host_id, outcome = 'throttled', case when outcome = 'throttled' then retry_after end, status, case when is_late then least(fetched_at, record_results.t) end,
                        case when is_held and is_busy then lease_id end, crawl_delay)::host_news end as news
            from observed
            order by page_id
        ),
        written as (
            update page p set
                reported_at = record_results.t,
                last_status = j.status,
                last_lease = case when j.is_held then j.lease_id else p.last_lease end,
                stale_lease = case when j.code = 'stale_lease' then j.lease_id else p.stale_lease end,
                due_at = case when j.is_held then j.new_due else p.due_at end,
                attempts = case when j.outcome in ('fetched', 'denied') then 0
                                when j.is_held and j.outcome in ('missing', 'failed') then least(p.attempts + 1, 30000)
                                else p.attempts end,
                state = case when j.code = 'ok' and p.state = 'live' and j.outcome in ('gone', 'moved') then j.outcome::page_state else p.state end,
                moved_to = case when j.code = 'ok' and j.outcome = 'moved' then redirects[j.ord] else p.moved_to end,
                fetched_at = case when j.is_observed then j.seen_at else p.fetched_at end,
                fetches = p.fetches + j.is_observed::int,
                changes = least(p.changes + case when j.is_observed then j.more_counted else 0 end::bigint, 2147483647),
                seen_changes = coalesce(j.seen_changes, p.seen_changes),
                seen_days = coalesce(j.seen_days, p.seen_days),
                frequency = case when j.is_observed then j.new_frequency else p.frequency end,
                etag = case when j.is_observed and j.status <> 304 then j.etag else coalesce(j.etag, p.etag) end,
                last_modified = case when j.last_modified > record_results.t then record_results.t
                                     when j.is_observed and j.status <> 304 then j.last_modified
                                     else p.last_modified end,
                content_hash = case when j.is_observed then coalesce(j.content_hash, p.content_hash) else p.content_hash end,
                sketch = case when j.is_observed then coalesce(j.sketch, p.sketch) else p.sketch end,
                relevance = coalesce(j.relevance, p.relevance),
                meta = coalesce(j.meta, p.meta)
            from judged j
            where p.ctid = j.tid and p.xmin = j.version and j.counts
            returning j.ord, p.page_id, p.host_id, j.code, j.outcome, j.is_held, j.is_observed, j.lease_id, j.round, j.held_due,
                      j.seen_at, j.days, j.more_counted, j.seen_days is not null as has_taught,
                      case when p.state = 'live' then p.due_at end as next_due, p.state <> 'forgotten' as is_known, p.state <> j.state or j.has_new_relevance as is_graph_news, j.link_count, j.news
        ),
        told as (
            insert into inbox (host_id, page_id, old_due, new_due, failed)
            select host_id, page_id, held_due, next_due, outcome = 'failed'
            from written
            where is_held and next_due is distinct from held_due
        ),
        logged as (
            insert into fetch_log (part, page_id, at, days, changed)
            select log_part(record_results.t, s.keep_log), page_id, seen_at, days, more_counted > 0
            from written
            where s.keep_log is not null and is_observed and has_taught
        ),
        answered as (
            select ord, page_id, code,
                   case when code = 'stale_lease' then 'the lease does not hold the page; it counts as an observation'
                        when link_count > 10000 then format('the first 10000 of its %s links were taken', link_count) end as detail,
                   next_due as next_fetch_at, is_observed and is_known and link_count is not null as brought_links, is_graph_news, news
            from written
            union all
            select ord, page_id, code,
                   case code
                       when 'invalid' then problem
                       when 'unknown_page' then format('there is no page %s', coalesce(page_id::text, left(url, 200)))
                       when 'duplicate' then 'it was reported before'
                       when 'stale_lease' then format('lease %s does not hold the page', lease_id)
                   end,
                   case when state = 'live' then due_at end, false, false,
                   case when code = 'stale_lease' then news end
            from judged
            where not counts
        )
        select array_agg((ord, page_id, code, detail, next_fetch_at)::recrawl.report_result),
               array_agg(ord) filter (where brought_links),
               array_agg(page_id) filter (where is_graph_news),
               array_agg(news) filter (where not (news is null)),
               (select array_agg(array[lease_id, round, reports])
                from (select lease_id, round, count(*) as reports from written where is_held group by lease_id, round) w)
        into some_answers, some_observed, some_pages, some_news, some_leases
        from answered;

        -- One by one: joined, a lease table that looks small would be read from end to end, and with it whatever is dead in it.
        for i in 1 .. coalesce(array_length(some_leases, 1), 0) loop
            delete from lease where lease_id = some_leases[i][1] and round = some_leases[i][2] and unreported <= some_leases[i][3];
            if not found then
                update lease set unreported = unreported - some_leases[i][3] where lease_id = some_leases[i][1] and round = some_leases[i][2];
            end if;
        end loop;

        answers := answers || some_answers;
        observed := observed || some_observed;
        news := news || some_news;
        if some_pages is not null then
            perform tell_graph(some_pages);
        end if;
        exit when cardinality(some_answers) = cardinality(pending);
        pending := array(select r from unnest(pending) r where (r.ord in (select a.ord from unnest(some_answers) a)) is not true);
    end loop;

    if cardinality(observed) > 0 then
        with changed as (
            insert into link (page_id, targets)
            select distinct on (f.page_id) f.page_id, f.targets
            from unnest(observed) with ordinality as o (ord, turn)
            join unnest(led_to) f on f.ord = o.ord
            order by f.page_id, o.turn desc       -- the last that was judged
            on conflict (page_id) do update set targets = excluded.targets where link.targets <> excluded.targets
            returning page_id
        )
        insert into graph_news (page_id) select page_id from changed where not (select is_news_full());
    end if;
    if cardinality(news) > 0 then
        perform tell_hosts(t, news);
    end if;
    return query select a.* from unnest(answers) a order by a.ord;
end $$;
comment on function recrawl_internal.record_results(timestamptz, recrawl_internal.result[]) is 'Judges checked results and records them; what report and report_pages share.';

-- One host at a time, in order of id.
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
comment on function recrawl_internal.tell_hosts(timestamptz, recrawl_internal.host_news[]) is 'Applies to hosts what reports said about them.';

create or replace function recrawl_internal.report_at(t timestamptz, results jsonb) returns setof recrawl.report_result
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
declare
    checked result[];
    one     result[];
begin
    perform check_isolation('report');
    if jsonb_typeof(results) is distinct from 'array' then
        perform refuse(format('report: results must be a JSON array of objects, got %s', coalesce(jsonb_typeof(results), 'null')));
    end if;
    begin
        checked := checked_results(results, t);
    exception when data_exception then
        -- Some element has a value of the wrong type: one by one, to say which and take the others.
        for i in 0 .. jsonb_array_length(results) - 1 loop
            begin
                one := checked_results(jsonb_build_array(without_nonsense(results -> i, t)), t);
                one[1].ord := i + 1;
            exception when data_exception then
                one := array[jsonb_populate_record(null::result, jsonb_build_object('ord', i + 1, 'problem', problem_of(results -> i)))];
            end;
            checked := checked || one;
        end loop;
    end;
    return query select * from record_results(t, checked);
end $$;
comment on function recrawl_internal.report_at(timestamptz, jsonb) is 'report at a given time.';

create or replace function recrawl.report(results jsonb) returns setof recrawl.report_result
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query select * from report_at(clock_timestamp(), results);
end $$;
comment on function recrawl.report(jsonb) is
    'Takes in what became of pages handed out; one row per element, in order. An element has page_id or url, lease_id, status '
    '(HTTP; 0 or less = no answer), and what is known of fetched_at, changed or content_hash, changes (a count), last_modified, etag, '
    'links (absent = unknown, [] = none), relevance (0 to 1), sketch, retry_after, crawl_delay (seconds), redirect_to, robots_denied, meta.';
