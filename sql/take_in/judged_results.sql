-- Judges each result: whether it counts, what it teaches about the rate, and when its page is due next. Writes nothing.

create or replace function recrawl_internal.letter_of(
    code text, outcome text, is_first boolean, is_retry boolean, has_changed boolean, has_taught boolean
) returns text
language sql immutable parallel safe
begin atomic
    select case when code = 'ok' then
                    substr(case outcome
                               when 'fetched' then
                                   case when is_first then 'fF' when has_changed then 'cC' when has_taught then 'uU'
                                        else 'nN' end
                               when 'failed' then 'eE'
                               when 'throttled' then 'tT'
                               when 'denied' then 'dD'
                               when 'declined' then null
                               else 'mM' end,
                           case when is_retry then 2 else 1 end, 1)
                when code = 'duplicate' then 'r'
                when code = 'stale_lease' then 's'
                else 'x' end;
end;
comment on function recrawl_internal.letter_of(text, text, boolean, boolean, boolean, boolean) is
    'The letter that a result is counted as, see pulse.letters.';

-- The first retry of a failed page comes after a minute, because many failures are short. The next retry comes after a
-- quarter of the usual interval of the page, at most a day. Each further wait is twice as long. Example: a page that is
-- usually fetched every four days gets about three requests more than planned while it fails. It would get five more
-- if the second wait were a sixteenth. After an outage the page waits about as long again as the outage lasted.
--
-- Throttled pages wait in the same way. Otherwise a host that always answers one page with 503 would get a request for
-- only that page at the end of each block.
create or replace function recrawl_internal.wait_after(
    outcome text, attempts smallint, was_missing boolean, retry_after interval, per_day real
) returns interval
language sql volatile parallel safe    -- volatile because backoff() is; otherwise it would not be inlined
begin atomic
    select case
        when outcome = 'denied' then interval '168 hours'
        when outcome = 'missing' then
            recrawl_internal.backoff('24 hours', '2160 hours', case when was_missing then attempts else 0 end)
        when outcome in ('failed', 'throttled') then greatest(
            case when attempts = 0 then recrawl_internal.backoff('1 minute', '1 minute', 0)
                 else recrawl_internal.backoff(
                     greatest(interval '1 minute', least(interval '24 hours' / per_day / 4, interval '24 hours')),
                     '720 hours', attempts - 1) end,
            case when outcome = 'throttled' and retry_after < interval '24 hours' then retry_after
                 when outcome = 'throttled' and retry_after is not null then interval '24 hours' end)
    end;
end;
comment on function recrawl_internal.wait_after(text, smallint, boolean, interval, real) is
    'How long a page waits after a request that failed; null if it is never requested again. attempts: requests in '
    'a row that failed before this one. was_missing: the page was missing at the last request. per_day: how often the '
    'page is usually fetched.';

create or replace function recrawl_internal.judged_results(
    t timestamptz, pending recrawl_internal.result[], fenced bigint[], redirects bigint[], any_lease boolean,
    newest_lease bigint, s recrawl_internal.setting, common recrawl_internal.host_terms
) returns table (
    ord int, problem text, page_id bigint, url text, lease_id bigint, status int, relevance real, meta jsonb,
    link_count int, base_at timestamptz, etag text, last_modified timestamptz, content_hash text, sketch int[],
    tid tid, version xid, state text, due_at timestamptz, round int, old_due timestamptz, old_rank real,
    code text, outcome text, is_held boolean, is_observed boolean, counts boolean, moves boolean,
    has_new_relevance boolean, seen_at timestamptz, days float8, more_changes int, seen_changes real, seen_days real,
    new_frequency real, new_due timestamptz, due_is text, news recrawl_internal.host_news,
    letter text, late real, periods_lost float8
)
language sql stable
begin atomic
    with
    -- The code of the answer, and the time when the page was seen. If the result gives no time, a leased page was seen
    -- in its slot. The time of a leased page is never before its lease began or before its last known fetch.
    coded as (
        select m.*,
               case
                   when m.problem is not null then 'invalid'
                   when m.tid is null then 'unknown_page'
                   when m.nth > 1 or m.lease_id in (m.last_lease, m.stale_lease)
                        or m.lease_id is null and m.fetched_at <= m.last_fetched_at then 'duplicate'
                   when m.lease_id < m.last_lease and m.slot is not null then 'duplicate'
                   when m.lease_id is not null and m.slot is null then 'stale_lease'
                   else 'ok'
               end as code,
               case when m.problem is null then
                   greatest(least(coalesce(m.fetched_at, m.slot, t), t), m.popped_at,
                            case when m.slot is not null then m.last_fetched_at end) end as seen_at
        from recrawl_internal.matched_results(t, pending, fenced, redirects, any_lease) m
    ),
    -- Whether the result moves the due time, and whether it is an observation of the page. A report with a stale lease
    -- is an observation too, unless a newer report came first or that lease id was never given out.
    seen as (
        select c.*, v.*,
               c.code = 'ok' and c.slot is not null as is_held,
               c.outcome = 'fetched'
                   and (c.code = 'ok'
                        or c.code = 'stale_lease'
                           and c.lease_id > greatest(c.last_lease, c.stale_lease, 0) and c.lease_id <= newest_lease
                           and (c.fetched_at is null or c.last_fetched_at is null or c.fetched_at > c.last_fetched_at)
                   ) as is_observed,
               -- A result without a lease may set the due time only if no lease has the page. While a lease has it, the
               -- queue has the page at the due time of that lease, and the result must not move it.
               c.code = 'ok' and (c.slot is not null or c.said_due is not null) as moves,
               c.fetched_at > coalesce(c.start_by, '-infinity') as is_late,
               case when c.code = 'ok' and c.outcome <> 'declined' and (c.last_fetched_at is not null or c.attempts > 0)
                    then greatest(date_part('epoch', c.slot - c.due), 0)::real end as late,
               case when c.status <> 304 then c.changes end as counted
        from coded c
        cross join lateral recrawl_internal.comparison(
            c.status, c.changes, c.changed, c.sketch, c.content_hash, c.etag, c.last_modified, c.seen_at,
            c.last_sketch, c.last_hash, c.last_etag, c.last_modification, c.last_fetched_at, c.base_at, c.planned_due
        ) v
        offset 0                       -- computed once, not at each use
    ),
    -- The evidence for the rate of the page.
    taught as (
        select n.*, own.terms, l.seen_changes::real as new_changes, l.seen_days::real as new_days, l.worth as days
        from seen n
        left join lateral (
            select h as terms from recrawl_internal.host_terms h where h.host_id = n.host_id and n.is_observed offset 0
        ) own on true
        cross join lateral recrawl_internal.belief(null, 0, 0, own.terms, common) prior
        left join lateral recrawl_internal.learnt(
            n.seen_changes, n.seen_days, prior.changes, prior.days, case when n.is_observed then n.days_since end,
            n.planned_days, n.counted, n.has_changed, n.age_days
        ) l on true
        offset 0
    ),
    -- The new frequency of fetches: from the pinned interval, or from the new rate and the price of the host. Before
    -- the first allocation it stays as it is.
    priced as (
        select n.*,
               case when f.frequency is null then n.frequency
                    else recrawl_internal.page_frequency(f.frequency, null, null) end as new_frequency
        from taught n
        cross join lateral recrawl_internal.belief(
            n.pinned_rate, coalesce(n.new_changes, n.seen_changes), coalesce(n.new_days, n.seen_days), n.terms, common
        ) b
        left join lateral recrawl_internal.frequency_of(
            n.pinned_interval, n.terms, common, recrawl_internal.highest_frequency(s), n.value, b.rate
        ) f on n.is_observed
        offset 0
    )
    -- The next due time, the news for the host, and the letter that the result is counted as.
    select p.ord, p.problem, p.page_id, p.url, p.lease_id, p.status, p.relevance, p.meta,
           p.link_count,
           case when p.is_open then p.compared_since end,
           coalesce(p.etag, case when p.is_same then p.last_etag end),
           coalesce(case when not (p.is_open or p.last_modified is null) then least(p.last_modified, t) end,
                    case when p.is_same then p.last_modification end),
           coalesce(p.content_hash, case when p.is_same then p.last_hash end),
           coalesce(p.sketch, case when p.is_same then p.last_sketch end),
           p.tid, p.version, p.state, p.due_at, p.round, case when p.is_held then p.held_due else p.due_at end,
           case when not p.is_held and p.due_at is null then -p.value end,
           p.code, p.outcome, p.is_held, p.is_observed, p.code = 'ok' or p.is_observed, p.moves,
           p.relevance <> coalesce(p.last_relevance, -1),
           p.seen_at, p.days,
           case when p.last_fetched_at is not null then coalesce(p.counted, p.has_changed::int, 0) else 0 end,
           p.new_changes, p.new_days, p.new_frequency,
           coalesce(p.said_due, case
               when p.outcome = 'fetched' then recrawl_internal.next_due(
                   p.due, p.slot, recrawl_internal.page_frequency(p.new_frequency, p.pinned_rate, (s).frequency),
                   (s).shortest_interval)
               else t + recrawl_internal.wait_after(
                   p.outcome, p.attempts, p.was_missing, p.retry_after,
                   recrawl_internal.page_frequency(p.new_frequency, p.pinned_rate, (s).frequency))
           end),
           p.due_is,
           case when p.outcome = 'throttled' or p.is_busy or p.is_late or p.crawl_delay is not null then
               (p.host_id, p.outcome = 'throttled', case when p.outcome = 'throttled' then p.retry_after end, p.status,
                case when p.is_late then least(p.fetched_at, t) end,
                case when p.is_held and p.is_busy then p.lease_id end, p.crawl_delay)::recrawl_internal.host_news
           end,
           recrawl_internal.letter_of(p.code, p.outcome, p.last_fetched_at is null, p.attempts > 0,
                                      coalesce(p.counted, p.has_changed::int) > 0, p.new_days is not null),
           p.late,
           ceil(p.late * recrawl_internal.page_frequency(p.new_frequency, p.pinned_rate, (s).frequency) / 86400) - 1
    from priced p;
end;
comment on function recrawl_internal.judged_results(
    timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
    bigint, recrawl_internal.setting, recrawl_internal.host_terms
) is
    'Judges each result: what it changes for its page, its host and the schedule. Writes nothing.';
