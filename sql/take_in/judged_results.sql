-- What each result is worth: whether it counts, what it teaches, when its page is due next.

create or replace function recrawl_internal.judged_results(
    t timestamptz, pending recrawl_internal.result[], fenced bigint[], redirects bigint[], any_lease boolean,
    newest_lease bigint, s recrawl_internal.setting, common recrawl_internal.host_terms
) returns table (
    ord int, problem text, page_id bigint, url text, lease_id bigint, status int, last_modified timestamptz, etag text,
    content_hash text, sketch int[], relevance real, meta jsonb, link_count int,
    tid tid, version xid, state text, due_at timestamptz, round int, held_due timestamptz,
    code text, outcome text, is_held boolean, is_observed boolean, counts boolean, has_new_relevance boolean,
    seen_at timestamptz, days float8, more_changes int, seen_changes real, seen_days real,
    new_frequency real, new_due timestamptz, news recrawl_internal.host_news
)
language sql stable
as $$
    with
    -- The code of the answer; and when the page was seen: when nothing is said, a leased page was fetched in its slot,
    -- in any case not before it was handed out, or before what is known already.
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
               greatest(least(coalesce(m.fetched_at, m.slot, t), t), m.popped_at,
                        case when m.slot is not null then m.last_fetched_at end) as seen_at
        from recrawl_internal.matched_results(t, pending, fenced, redirects, any_lease) m
    ),
    -- Whether it moves the schedule, whether it is an observation, and of what. A stale report is one all the same,
    -- unless a newer one came first or nobody ever got that lease. The first fetch sets the base: there is nothing yet
    -- that it could have changed from. A Last-Modified of just now is what servers say that make each answer anew.
    seen as (
        select c.*,
               c.code = 'ok' and c.slot is not null as is_held,
               c.outcome = 'fetched'
                   and (c.code = 'ok'
                        or c.code = 'stale_lease'
                           and c.lease_id > greatest(c.last_lease, c.stale_lease, 0) and c.lease_id <= newest_lease
                           and (c.fetched_at is null or c.last_fetched_at is null or c.fetched_at > c.last_fetched_at)
                   ) as is_observed,
               c.fetched_at > coalesce(c.start_by, '-infinity') as is_late,
               date_part('epoch', c.seen_at - c.last_fetched_at) / 86400 as days,
               case when c.status <> 304 then c.changes end as counted,
               case when c.status = 304 then false
                    else coalesce(c.changed, c.sketch <> c.last_sketch, c.content_hash <> c.last_hash,
                                  case when c.is_dated then c.last_modified > c.last_fetched_at end)
               end as has_changed,
               case when c.is_dated and c.last_modified > c.last_fetched_at
                    then date_part('epoch', c.seen_at - c.last_modified) / 86400 end as age_days
        from (select *, last_modified < seen_at - interval '2 seconds' as is_dated from coded) c
        offset 0                       -- worked out once, not wherever it is used
    ),
    -- The evidence on its rate.
    taught as (
        select n.*, own.terms, l.seen_changes::real as new_changes, l.seen_days::real as new_days
        from seen n
        left join lateral (
            select h as terms from recrawl_internal.host_terms h where h.host_id = n.host_id and n.is_observed offset 0
        ) own on true
        cross join lateral recrawl_internal.belief(null, 0, 0, own.terms, common) prior
        left join lateral recrawl_internal.learnt(
            n.seen_changes, n.seen_days, prior.changes, prior.days,
            case when n.is_observed then n.days end, n.counted, n.has_changed, n.age_days
        ) l on true
        offset 0
    ),
    -- How often it is fetched from now on: as its host's price says of its new rate; before the first allocation as it
    -- was.
    priced as (
        select n.*,
               case when f.frequency is null then n.frequency
                    else recrawl_internal.page_frequency(f.frequency, null, null) end as new_frequency
        from taught n
        cross join lateral recrawl_internal.belief(
            n.pinned_rate, coalesce(n.new_changes, n.seen_changes), coalesce(n.new_days, n.seen_days), n.terms, common
        ) b
        left join lateral recrawl_internal.frequency_in_force(
            n.terms, common, recrawl_internal.highest_frequency(s), n.value, b.rate
        ) f on n.is_observed
        offset 0
    )
    -- When it is due next, and what its host must learn.
    select p.ord, p.problem, p.page_id, p.url, p.lease_id, p.status, p.last_modified, p.etag,
           p.content_hash, p.sketch, p.relevance, p.meta, p.link_count,
           p.tid, p.version, p.state, p.due_at, p.round, p.held_due,
           p.code, p.outcome, p.is_held, p.is_observed, p.code = 'ok' or p.is_observed,
           p.relevance <> coalesce(p.last_relevance, -1),
           p.seen_at, p.days,
           case when p.days is not null then coalesce(p.counted, p.has_changed::int, 0) else 0 end,
           p.new_changes, p.new_days, p.new_frequency,
           case p.outcome
               when 'fetched' then recrawl_internal.next_due(
                   p.due, p.slot, recrawl_internal.page_frequency(p.new_frequency, p.pinned_rate, (s).frequency))
               when 'denied' then t + interval '7 days'
               when 'throttled' then p.due                -- at once, when its host is
               when 'missing' then t + recrawl_internal.backoff('1 day', '90 days', p.attempts)
               when 'failed' then t + case
                   when p.attempts + 1 < (s).max_attempts then recrawl_internal.backoff('1 minute', '1 day', p.attempts)
                   else recrawl_internal.backoff('30 days', '30 days', 0) end
           end,
           case when p.outcome = 'throttled' or p.is_busy or p.is_late or p.crawl_delay is not null then
               (p.host_id, p.outcome = 'throttled', case when p.outcome = 'throttled' then p.retry_after end, p.status,
                case when p.is_late then least(p.fetched_at, t) end,
                case when p.is_held and p.is_busy then p.lease_id end, p.crawl_delay)::recrawl_internal.host_news
           end
    from priced p
$$;
comment on function recrawl_internal.judged_results(
    timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
    bigint, recrawl_internal.setting, recrawl_internal.host_terms
) is
    'What each result is worth to its page, its host and the schedule. Reads only.';
