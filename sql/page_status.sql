create or replace view recrawl.page_status as
select p.page_id,
       p.url,
       h.name as host,
       p.value,
       p.rate,
       recrawl_internal.page_frequency(p.rate, s.frequency) as frequency,
       p.due_at,
       p.fetched_at,
       p.fetches,
       p.changes,
       case when p.state <> 'live' then p.state::text
            when p.attempts >= s.max_attempts then 'failing'
            when p.fetched_at is null then 'new'
            else 'live' end as state,
       p.attempts,
       p.last_status,
       p.reported_at,
       p.depth,
       p.moved_to,
       p.etag,
       p.last_modified,
       p.content_hash,
       p.meta
from recrawl_internal.page p
join recrawl_internal.host h using (host_id)
cross join recrawl_internal.setting s;
comment on view recrawl.page_status is
    'Every page. rate in changes per day, frequency in fetches per day; due_at as of its last report, null = waits among the new pages.';
