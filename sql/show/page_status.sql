-- page_status: everything that is known of a page. Frequencies are computed from the price of the host when the view is
-- read. So right after an allocation they are exactly its result.
create or replace view recrawl.page_status as
select p.page_id,
       p.url,
       h.name as host,
       p.value,
       p.pinned_value,
       c.hub,
       c.authority,
       c.importance,
       coalesce(p.pinned_relevance, p.relevance) as relevance,
       b.rate,
       coalesce(p.pinned_rate, i.low) as rate_low,
       coalesce(p.pinned_rate, i.high) as rate_high,
       case when coalesce(own.price, common.price) is not null or f.frequency is not null then f.frequency
            when p.state = 'live' and recrawl_internal.is_never(p.due_at) is not true
                then recrawl_internal.page_frequency(
                    coalesce(p.frequency, recrawl_internal.times_per_day(p.pinned_interval)),
                    p.pinned_rate, s.frequency)
       end as frequency,
       case when p.due_at is not null then recrawl_internal.readable(p.due_at) end as due_at,
       p.fetched_at,
       p.fetches,
       p.changes,
       case when p.state <> 'live' then p.state
            when p.due_is in ('done', 'declined') then p.due_is
            when p.is_denied then 'denied'
            when p.attempts >= s.max_attempts then 'failing'
            when p.fetched_at is null then 'new'
            else 'live' end as state,
       p.attempts,
       p.last_status,
       p.reported_at,
       p.depth,
       p.moved_to,
       case when p.base_at is null then p.etag end as etag,
       case when p.base_at is null then p.last_modified end as last_modified,
       case when p.base_at is null then p.content_hash end as content_hash,
       case when p.base_at is null then p.sketch end as sketch,
       p.meta,
       p.pinned_interval,
       p.boost,
       p.found_at
from recrawl_internal.page p
join recrawl_internal.host h using (host_id)
left join recrawl_internal.page_score c on c.page_id = p.page_id and p.state = 'live'
cross join recrawl_internal.setting s
join recrawl_internal.host_terms common on common.host_id = 0
left join recrawl_internal.host_terms own on own.host_id = p.host_id
cross join lateral recrawl_internal.belief(p.pinned_rate, p.seen_changes, p.seen_days, own, common) b
cross join lateral recrawl_internal.rate_interval(b.changes, b.days) i
left join lateral recrawl_internal.frequency_of(
    p.pinned_interval, own, common, recrawl_internal.highest_frequency(s), p.value, b.rate
) f on recrawl_internal.takes_part(p.state, p.attempts, s.max_attempts, p.fetched_at, p.pinned_rate, p.due_is);
comment on view recrawl.page_status is
    'Every page. rate in changes per day, with rate_low and rate_high: 90 % lie between; frequency in fetches per '
    'day, null for a page that takes no part in allocation; due_at as of its last report, null = waits among the new '
    'pages.';
select recrawl_internal.copy_comments('recrawl.page_status');
comment on column recrawl.page_status.url is 'What to fetch.';
comment on column recrawl.page_status.host is 'Its host.';
comment on column recrawl.page_status.value is 'What its freshness is worth, boosts included; 1 on average.';
comment on column recrawl.page_status.pinned_value is
    'That before boosts, where it is pinned: given with the URL or by set_value.';
comment on column recrawl.page_status.hub is
    'How good a list of links it is; 1 on average. As of the last run of opic, like authority and importance.';
comment on column recrawl.page_status.importance is
    'How often somebody who follows links at random would come by; 1 on average. Null unless importance_weight asks '
    'for it.';
comment on column recrawl.page_status.relevance is
    'How well it fits the crawl, 0 to 1; null = unknown, which counts as one half.';
comment on column recrawl.page_status.rate is 'Changes per day, pinned or estimated.';
comment on column recrawl.page_status.rate_low is 'Changes per day: with a probability of 95 % its rate is higher.';
comment on column recrawl.page_status.rate_high is 'Changes per day: with a probability of 95 % its rate is lower.';
comment on column recrawl.page_status.frequency is
    'Fetches per day; null for a page that is not live or not wanted, and, once there was an allocation, for one that '
    'waits for its first fetch or keeps failing.';
comment on column recrawl.page_status.due_at is
    'When it is wanted next, as of its last report; null = waits among the new pages, 9999 = not until somebody says '
    'so.';
comment on column recrawl.page_status.state is
    'new, live, denied (by robots.txt, as of the last report; rechecked every 7 days), failing (given up but for rare '
    'attempts), done (not wanted until somebody says so), declined (by a crawler, which is the same), gone (410), '
    'moved (301, 308), excluded or forgotten.';
comment on column recrawl.page_status.last_status is 'HTTP status of the last report; 0 or less = no answer.';
comment on column recrawl.page_status.etag is 'Validator of the last successful fetch.';
comment on column recrawl.page_status.last_modified is 'Validator of the last successful fetch.';
comment on column recrawl.page_status.content_hash is 'Of the last successful fetch.';
comment on column recrawl.page_status.sketch is 'Of the last successful fetch; sketch_distance compares two.';
comment on column recrawl.page_status.meta is 'The user''s own.';
grant select on recrawl.page_status to recrawl_reader;
