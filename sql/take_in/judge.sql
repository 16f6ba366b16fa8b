-- Judges a result: whether it counts, what it teaches about the rate, and when its page is due next. All functions of
-- this file take what they need as arguments and read no table. Their usual arguments:
--
--   t    the time of the report             v    the verdict on the result, see verdict_on()
--   r    the result                         c    the comparison of the fetch with the page (comparison.sql)
--   p    the page before the report         e    the evidence after the fetch; null if v.is_observed is false
--   l    the place of the page in the lease that the result names; null if that lease does not run or has no such page
--   target: the live page that a permanent redirect leads to; null if no such page exists
--
-- The functions are inlined into the plan of record_pages(), so they have no search_path of their own. Each «offset 0»
-- stops the planner from computing an expression again at each place that uses it.

-- What a status means for the schedule: fetched, moved (permanently), missing, gone, throttled (429 or 503: the host
-- wants fewer requests), failed (408, 425, any other 5xx, or no answer) or denied (by robots.txt).
create or replace function outcome_of(status int, robots_denied boolean, target bigint, page_id bigint) returns text
language sql immutable parallel safe
return case
    when robots_denied then 'denied'
    when status in (301, 308) then case when target <> page_id then 'moved' else 'missing' end
    when status between 200 and 399 then 'fetched'
    when status = 410 then 'gone'
    when status in (429, 503) then 'throttled'
    when status in (408, 425) then 'failed'
    when status between 400 and 499 then 'missing'
    else 'failed'
end;

-- The letter that a result is counted as, see pulse.letters.
create or replace function letter_of(
    code text, outcome text, is_first boolean, is_retry boolean, has_changed boolean, has_taught boolean
) returns text
language sql immutable parallel safe
return case when code = 'ok' then
                substr(case outcome
                           when 'fetched' then
                               case when is_first then 'fF' when has_changed then 'cC' when has_taught then 'uU'
                                    else 'nN' end
                           when 'failed' then 'eE'
                           when 'throttled' then 'tT'
                           when 'denied' then 'dD'
                           when 'declined' then ''
                           else 'mM' end,
                       case when is_retry then 2 else 1 end, 1)
            when code = 'duplicate' then 'r'
            when code = 'stale_lease' then 's'
            else 'x' end;

-- How long a page waits after a request that brought no page; null if it is never requested again. attempts: such
-- requests in a row before this one. was_missing: the page was missing at the last request. per_day: how often the page
-- is usually fetched.
--
-- The first retry of a failed page comes after a minute, because many failures are short. The next retry comes after a
-- quarter of the usual interval of the page, at most a day. Each further wait is twice as long. Example: a page that is
-- usually fetched every four days waits one minute, then 1, 2 and 4 days. After an outage the page waits about as long
-- again as the outage lasted.
--
-- Throttled pages wait in the same way. Otherwise a host that always answers one page with 503 would get a request for
-- only that page at the end of each block.
create or replace function wait_after(
    outcome text, attempts smallint, was_missing boolean, retry_after interval, per_day real
) returns interval
language sql volatile parallel safe    -- volatile because backoff() is; otherwise it would not be inlined
return case
    when outcome = 'denied' then interval '168 hours'
    when outcome = 'missing' then
        backoff('24 hours', '2160 hours', case when was_missing then attempts else 0 end)
    when outcome in ('failed', 'throttled') then greatest(
        case when attempts = 0 then backoff('1 minute', '1 minute', 0)
             else backoff(
                 greatest(interval '1 minute', least(interval '24 hours' / per_day / 4, interval '24 hours')),
                 '720 hours', attempts - 1) end,
        case when outcome = 'throttled' and retry_after < interval '24 hours' then retry_after
             when outcome = 'throttled' and retry_after is not null then interval '24 hours' end)
end;

-- The verdict on a result: the outcome of its request, the code of the answer, seen_at, and two booleans.
-- page_next() adds two more booleans:
--
--     the result                            code           is_on_lease   is_observed   is_counted    sets_due
--     is on a running lease of its page     ok             yes           if fetched    yes           yes
--     has no lease_id                       ok             no            if fetched    yes           if due or declined
--     is on a lease that has not its page   stale_lease    no            if news       if observed   no
--     repeats another result                duplicate      no            no            no            no
--     names no known page                   unknown_page   no            no            no            no
--     has an error                          invalid        no            no            no            no
--
--     is_on_lease   it ends the lease of the page
--     is_observed   it is a successful fetch of the page. «If news» = yes if it was fetched, next_pages gave out this
--                   lease, no newer result was recorded before, and its turn is 'first' (see turns_of())
--     is_counted    it changes the row of the page
--     sets_due      it decides when the page is due next (after 410 or a permanent redirect: never)
--
-- A lease that has ended has no pages any more.
--
-- seen_at is when the page was seen. If the result gives no time, a leased page was seen in its slot. The time of a
-- leased page is never before its lease began or before its last successful fetch.
--
-- With ends_without_lease = false, a result without lease_id is invalid if it stops or postpones the fetches of the
-- page: 410, a permanent redirect, declined, or a due time, which can lie in the year 2200.
create or replace function verdict_on(
    t timestamptz, r result, p page, l lease_place, target bigint, turn text, rules judging_rules
) returns setof verdict
language sql stable parallel safe rows 1
begin atomic
    select v.outcome, v.code,
           case when r.problem is null then
               greatest(least(coalesce(r.fetched_at, l.slot, t), t), l.handed_out_at,
                        case when l.slot is not null then p.fetched_at end) end,
           v.code = 'ok' and l.slot is not null,
           v.outcome = 'fetched'
               and (v.code = 'ok'
                    or v.code = 'stale_lease' and turn = 'first'
                       and r.lease_id > greatest(p.last_lease, p.stale_lease, 0)
                       and r.lease_id <= rules.newest_lease
                       and (p.fetched_at >= r.fetched_at) is not true)
    from (select case when (r.extras).declined then 'declined'
                      else outcome_of(r.status, (r.extras).robots_denied, target, p.page_id) end as outcome,
                 case
                     when r.problem is not null then 'invalid'
                     when r.lease_id is null and not (rules.setting).ends_without_lease
                          and (r.status = 410 or (r.extras).redirect_to is not null or (r.extras).due is not null
                               or (r.extras).declined) then 'invalid'
                     when p.page_id is null then 'unknown_page'
                     -- reported on this lease before
                     when turn = 'repeated' or r.lease_id in (p.last_lease, p.stale_lease) then 'duplicate'
                     -- without a lease, and no newer than the last fetch
                     when r.lease_id is null and r.fetched_at <= p.fetched_at then 'duplicate'
                     -- reported on a newer lease before
                     when r.lease_id < p.last_lease and l.slot is not null then 'duplicate'
                     -- the lease has ended, or does not have the page
                     when r.lease_id is not null and l.slot is null then 'stale_lease'
                     when turn = 'outranked' then 'duplicate'
                     else 'ok'
                 end as code
          offset 0) v
    offset 0;
end;

-- The evidence for the rate of a page after a fetch (seen_changes, seen_days), the days that the fetch counts for, and
-- the new frequency. If the fetch taught nothing, all but the frequency are null. The new frequency follows from the
-- pinned interval, or from the new rate and the price of the host. Without a price it stays as it is.
create or replace function evidence_after(p page, c page_comparison, own host_terms, rules judging_rules)
returns setof evidence
language sql stable parallel safe rows 1
begin atomic
    select e.seen_changes, e.seen_days, e.days,
           case when f.frequency is null then p.frequency else clamped_frequency(f.frequency) end
    from (select l.seen_changes::real, l.seen_days::real, l.worth::real as days
          from belief(null, 0, 0, own, rules.common) prior
          left join lateral learnt(
              p.seen_changes, p.seen_days, prior.changes, prior.days, c.days_since, c.planned_days, c.counted,
              c.has_changed, c.age_days) l on true
          offset 0) e
    cross join lateral belief(
        p.pinned_rate, coalesce(e.seen_changes, p.seen_changes), coalesce(e.seen_days, p.seen_days), own, rules.common
    ) b
    left join lateral frequency_of(
        p.pinned_interval, own, rules.common, highest_frequency(rules.setting), p.value, b.rate
    ) f on true
    offset 0;
end;

-- The explanation of a code in the answer to a result; null if there is nothing to explain.
create or replace function detail_of(code text, is_observed boolean, r result) returns text
language sql stable parallel safe      -- like format()
return case code
    when 'invalid' then
        coalesce(r.problem,
                 'a report without lease_id must not end a page: the setting ends_without_lease is false')
    when 'unknown_page' then
        format('there is no page %s', coalesce(r.page_id::text, left((r.extras).url, 200)))
    when 'duplicate' then 'it was reported before'
    when 'stale_lease' then
        case when is_observed then 'the lease does not hold the page; it counts as an observation'
             else format('lease %s does not hold the page', r.lease_id) end
    when 'ok' then
        case when cardinality((r.extras).links) > most_links() then
            format('the first %s of its %s links were taken', most_links(), cardinality((r.extras).links)) end
end;

-- The columns of page that a report changes, apart from meta and the columns of fetches_after. A declined page was not
-- requested, so its last request stays what it was.
create or replace function page_after(
    t timestamptz, r result, p page, v verdict, state text, moved_to bigint, due_at timestamptz, due_is text
) returns page_after
language sql stable parallel safe
return (state, moved_to, due_at, due_is,
        -- reported_at, last_status, is_denied
        case when v.outcome = 'declined' then p.reported_at else t end,
        case when v.outcome = 'declined' then p.last_status else r.status end,
        case when v.outcome = 'declined' then p.is_denied when v.outcome = 'denied' then true end,
        -- attempts
        case when v.outcome in ('fetched', 'denied') then 0
             when v.is_on_lease and v.outcome in ('missing', 'failed', 'throttled') then least(p.attempts + 1, 30000)
             else p.attempts end,
        -- last_lease, stale_lease, relevance
        case when v.is_on_lease then r.lease_id else p.last_lease end,
        case when v.code = 'stale_lease' then r.lease_id else p.stale_lease end,
        coalesce((r.extras).relevance::real, p.relevance))::page_after;

-- A page after a report: its fetches, what they taught, and the version that the next fetch is compared with. etag,
-- last_modified, content_hash and sketch: what the fetch did not bring stays if the page is the same version.
create or replace function fetches_after(t timestamptz, r result, p page, v verdict, c page_comparison, e evidence)
returns fetches_after
language sql stable parallel safe
return case when v.is_observed then
           (-- fetched_at, successes, changes
            v.seen_at,
            p.successes + 1,
            least(p.changes + case when p.fetched_at is not null
                                   then coalesce(c.counted, c.has_changed::int, 0) else 0 end::bigint, 2147483647),
            -- seen_changes, seen_days, frequency
            coalesce(e.seen_changes, p.seen_changes),
            coalesce(e.seen_days, p.seen_days),
            e.frequency,
            -- base_at, planned_due
            case when c.is_open then c.compared_since end,
            null,
            -- etag, last_modified, content_hash, sketch
            coalesce(r.etag, case when c.is_same then p.etag end),
            coalesce(case when not c.is_open and r.last_modified is not null then least(r.last_modified, t) end,
                     case when c.is_same then p.last_modified end),
            coalesce(r.content_hash, case when c.is_same then p.content_hash end),
            coalesce((r.extras).sketch, case when c.is_same then p.sketch end)
           )::fetches_after
       else
           (p.fetched_at, p.successes, p.changes, p.seen_changes, p.seen_days, p.frequency, p.base_at, p.planned_due,
            p.etag, p.last_modified, p.content_hash, p.sketch)::fetches_after
       end;

-- What a result says about the host of its page: it answered 429 or 503, a request began after its start_by or without
-- a slot, the leased page that a one_at_a_time host waited for is back, a crawl delay.
create or replace function host_update_of(
    t timestamptz, r result, p page, l lease_place, v verdict, retry_after interval
) returns host_update
language sql stable parallel safe
return case
    when v.code not in ('ok', 'stale_lease') then null
    when v.outcome = 'throttled' or l.is_busy or (r.extras).crawl_delay between 0 and 1e9
         or r.fetched_at > coalesce(l.start_by, '-infinity') then
        (p.host_id, v.outcome = 'throttled', retry_after, r.status,
         -- late_start, freed_by, crawl_delay
         case when r.fetched_at > coalesce(l.start_by, '-infinity')
              then least(r.fetched_at, t) end,
         case when l.is_busy then r.lease_id end,
         case when (r.extras).crawl_delay between 0 and 1e9 then (r.extras).crawl_delay * interval '1 second' end
        )::host_update
end;

-- The state of a page after a report, when it is due next, and what step 4 of judge() needs to know about that:
--
--     the result                             due_at                                          due_is
--     does not set the due time              stays as it was                                 stays as it was
--     was declined                           never                                           declined
--     gives a due time (infinity = never)    that time                                       set (infinity: done)
--     is a successful fetch                  one interval after the last due time            null
--     is anything else                       after wait_after(); null if gone or moved       null
--
-- is_counted and sets_due: see verdict_on(). old_due: the due time that the page has in the queue. While another lease
-- holds the page, it has another place in the queue, so nothing moves there. Then a due time that this report sets
-- lasts only until that lease ends. late: how many seconds the slot of a revisit came after the page was due. per_day:
-- the fetches per day of the page from now on.
create or replace function page_next(
    t timestamptz, r result, p page, l lease_place, v verdict, e evidence, target bigint, rules judging_rules
) returns table (
    is_counted boolean, state text, moved_to bigint, sets_due boolean, old_due timestamptz, due_at timestamptz,
    due_is text, retry_after interval, late real, per_day real
)
language sql stable rows 1
begin atomic
    select v.code = 'ok' or v.is_observed as is_counted,
           case when v.code = 'ok' and p.state = 'live' and v.outcome in ('gone', 'moved') then v.outcome
                else p.state end as state,
           case when v.code = 'ok' and v.outcome = 'moved' then target else p.moved_to end as moved_to,
           d.sets_due,
           case when v.is_on_lease then l.held_due else p.due_at end as old_due,
           case when not d.sets_due then p.due_at
                when (r.extras).declined or (r.extras).due = 'infinity' then never(p.page_id)
                -- Crawlers give many pages the same second. So the times are spread over a millisecond.
                when (r.extras).due is not null then (r.extras).due + p.page_id % 1000 * interval '1 microsecond'
                when v.outcome = 'fetched' then
                    next_due(l.due, l.slot, d.per_day, (rules.setting).shortest_interval)
                else t + wait_after(
                    v.outcome, p.attempts,
                    outcome_of(p.last_status, p.is_denied, null, null) = 'missing',
                    d.retry_after, d.per_day) end as due_at,
           case when not d.sets_due then p.due_is
                when (r.extras).declined then 'declined'
                when (r.extras).due = 'infinity' then 'done'
                when (r.extras).due is not null then 'set' end as due_is,
           d.retry_after,
           case when v.is_on_lease and v.outcome <> 'declined' and (p.fetched_at is not null or p.attempts > 0)
                then greatest(date_part('epoch', l.slot - l.due), 0)::real end as late,
           d.per_day
    from (select v.code = 'ok'
                     and (v.is_on_lease or (r.extras).declined is true or (r.extras).due is not null) as sets_due,
                 case when v.outcome = 'throttled' and (r.extras).retry_after is not null
                      then wait_asked_for((r.extras).retry_after, t) end as retry_after,
                 page_frequency(case when v.is_observed then e.frequency else p.frequency end,
                                p.pinned_rate, (rules.setting).frequency) as per_day
         ) d
    offset 0;
end;

-- Everything that follows from one result, in four steps:
--
--   1. The verdict, and how the fetch compares with the page.
--   2. The evidence of the fetch about the rate of the page.
--   3. The state of the page after the report, and when it is due next.
--   4. The consequences for the page, its place in the queue, its host, pulse and the answer.
--
-- In SQL the result of a query stands first. So step 4 is at the top, and steps 1 to 3 follow.
create or replace function judge(
    t timestamptz, r result, p page, l lease_place, own host_terms, target bigint, turn text, rules judging_rules
) returns setof judgement
language sql stable rows 1
begin atomic
    -- 4.
    select (r.ord, r.page_id, v.code, detail_of(v.code, v.is_observed, r),
            case when n.state = 'live' and not is_never(n.due_at) then greatest(n.due_at, t) end, null
           )::recrawl.report_result as answer,
           v.is_on_lease,
           v.is_observed,
           case when n.is_counted then page_after(t, r, p, v, n.state, n.moved_to, n.due_at, n.due_is) end
               as page_after,
           case when n.is_counted then fetches_after(t, r, p, v, c, e) end as fetches_after,
           case when n.is_counted then (r.extras).meta end as meta,
           case when n.state <> p.state
                     or n.sets_due and case when n.state = 'live' then n.due_at end is distinct from n.old_due then
               (p.host_id, p.page_id, n.old_due, case when not v.is_on_lease and p.due_at is null then -p.value end,
                v.is_on_lease and v.outcome = 'failed')::page_move end as move,
           host_update_of(t, r, p, l, v, n.retry_after) as host_update,
           -- the letter of the result, how many seconds the fetch was late, and how many revisits were skipped
           (letter_of(v.code, v.outcome, p.fetched_at is null, p.attempts > 0,
                      coalesce(c.counted, c.has_changed::int) > 0, e.days is not null),
            n.late, nullif(greatest(ceil(n.late * n.per_day / 86400) - 1, 0), 0))::pulse_part as pulse
    -- 1.
    from verdict_on(t, r, p, l, target, turn, rules) v
    cross join lateral comparison(r, p, v.seen_at) c
    -- 2.
    left join lateral evidence_after(p, c, own, rules) e on v.is_observed
    -- 3.
    cross join lateral page_next(t, r, p, l, v, e, target, rules) n;
end;
