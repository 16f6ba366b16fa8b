create or replace view recrawl.host_status as
select h.name as host,
       recrawl_internal.host_gap(h.gap, h.crawl_delay, s.default_gap) as gap,
       case when h.last_slot_at > '-infinity'
            then h.last_slot_at + recrawl_internal.host_gap(h.gap, h.crawl_delay, s.default_gap) end as next_slot_at,
       case when h.blocked_until > clock_timestamp() then h.blocked_until end as blocked_until,
       case when h.blocked_until > clock_timestamp() then h.blocked_reason end as blocked_reason,
       case when h.ready_at < 'infinity' then h.ready_at end as ready_at,
       h.pages,
       h.head_new_id is not null as has_new,
       h.fetches,
       h.failures,
       h.crawl_delay,
       h.one_at_a_time,
       n.max_pages
from recrawl_internal.host h
join recrawl_internal.host_name n using (name)
cross join recrawl_internal.setting s;
comment on view recrawl.host_status is
    'Every host. gap: least time between two requests; ready_at: when it is looked at next; pages and fetches: taken in and handed out so far; failures: since most fetches succeeded.';
