-- page_status: everything that is known of a page. Frequencies are computed from the price of the host when the view is
-- read. So right after an allocation they are exactly its result.
create or replace view recrawl.page_status as
select p.page_id, p.url, h.name as host, p.value, p.pinned_value, c.hub, c.authority, c.importance,
       coalesce(p.pinned_relevance, p.relevance) as relevance,
       b.rate,
       coalesce(p.pinned_rate, i.low) as rate_low,
       coalesce(p.pinned_rate, i.high) as rate_high,
       case when coalesce(own.price, common.price) is not null or f.frequency is not null then f.frequency
            when p.state = 'live' and is_never(p.due_at) is not true
                then page_frequency(
                    coalesce(p.frequency, times_per_day(p.pinned_interval)),
                    p.pinned_rate, s.frequency)
       end as frequency,
       case when p.due_at is not null then readable(p.due_at) end as due_at,
       p.fetched_at, p.successes, p.changes,
       case when p.state <> 'live' then p.state
            when p.due_is in ('done', 'declined') then p.due_is
            when p.is_denied then 'denied'
            when p.attempts >= s.max_attempts then 'failing'
            when p.fetched_at is null then 'new'
            else 'live' end as state,
       p.attempts, p.last_status, p.reported_at, p.depth, p.moved_to,
       case when p.base_at is null then p.etag end as etag,
       case when p.base_at is null then p.last_modified end as last_modified,
       case when p.base_at is null then p.content_hash end as content_hash,
       case when p.base_at is null then p.sketch end as sketch,
       p.meta, p.pinned_interval, p.boost, p.added_at
from page p
join host h using (host_id)
left join page_score c on c.page_id = p.page_id and p.state = 'live'
cross join setting s
join host_terms common on common.host_id = 0
left join host_terms own on own.host_id = p.host_id
cross join lateral belief(p.pinned_rate, p.seen_changes, p.seen_days, own, common) b
cross join lateral rate_interval(b.changes, b.days) i
left join lateral frequency_of(p.pinned_interval, own, common, highest_frequency(s), p.value, b.rate) f
    on takes_part(p.state, p.attempts, s.max_attempts, p.fetched_at, p.pinned_rate, p.due_is);
select describe_view('recrawl.page_status',
    'One row for each page, with everything that recrawl knows of it.',
    'host', 'The host of the page.',
    'pinned_value', 'The value without boosts, if add_pages or set_value gave one; otherwise null.',
    'relevance', 'How well it fits your subject, 0 to 1. null = unknown, which counts as 0.5.',
    'rate', 'Changes per day, pinned or learned.',
    'rate_low', 'The page changes more often than this with a probability of 95 %. In changes per day.',
    'rate_high', 'The page changes less often than this with a probability of 95 %. In changes per day.',
    'frequency', 'Fetches per day. null = the page takes no part in allocation: it was never fetched and has no pinned '
        'rate, it fails too often, or its state is done, declined, gone, moved, excluded or kept_out. Before the first '
        'allocation: one fetch per pinned interval, otherwise the pinned rate, otherwise the setting frequency.',
    'due_at', 'The time when the page is due. For a leased page: the time when it was due. null = it waits among the '
        'new pages, is leased for the first time, or is gone or moved. The year 9999 = it is not fetched until you '
        'call fetch_now, or add_pages with due.',
    'state', 'new: not fetched yet. live: fetched. denied: robots.txt forbids it; tried again after 7 days. failing: '
        'it failed max_attempts times; tried rarely. done: a crawler or add_pages gave it the due time infinity. '
        'declined: its crawler will never request it. gone: 410. moved: a permanent redirect. excluded: by a pattern. '
        'kept_out: by keep_out().',
    'etag', 'Etag of the last successful fetch.',
    'last_modified', 'Last-Modified of the last successful fetch.',
    'content_hash', 'Hash of the last successful fetch, as the crawler reported it.',
    'sketch', 'Sketch of the last successful fetch: eight numbers that stand for the text. sketch_distance compares '
        'two.');
