create or replace view recrawl.host_status as
select n.name as host,
       recrawl_internal.host_gap(h.gap, h.crawl_delay, s.default_gap) as gap,
       recrawl_internal.slot_every(h, s) as slot_every,
       coalesce(t.price, common.price) as price,
       t.is_capped as capped,
       t.frequency,
       case when t.is_capped is not null then coalesce(t.floor, common.floor) end as floor,
       case when h.last_start_by > '-infinity' then recrawl_internal.next_slot(h, s) end as next_slot_at,
       case when h.blocked_until > clock_timestamp()
            then recrawl_internal.readable(h.blocked_until) end as blocked_until,
       case when h.blocked_until > clock_timestamp() then h.blocked_reason end as blocked_reason,
       recrawl_internal.if_it_comes(greatest(
           least(h.ready_at, case when h.new_class is not null then h.new_ready_at end),
           recrawl_internal.next_slot(h, s))) as ready_at,
       h.pages,
       h.head_new_id is not null as has_new,
       h.fetches,
       h.failures,
       h.crawl_delay,
       h.one_at_a_time,
       n.max_pages,
       t.prior_changes,
       t.prior_days,
       case when t.is_capped is not null then coalesce(t.pins_kept, common.pins_kept, 1) end as pins_kept
from recrawl_internal.host h
join recrawl_internal.host_name n on n.host_id = h.host_id and n.name = h.name   -- finds one host by its name
cross join recrawl_internal.setting s
join recrawl_internal.host_terms common on common.host_id = 0
left join recrawl_internal.host_terms t on t.host_id = h.host_id;
comment on view recrawl.host_status is
    'Every host. gap: least time between two requests; price: what a fetch must earn per day, the host''s own if '
    'capped; frequency: fetches per day that its pages were given at the last allocation; ready_at: when it is '
    'looked at next; pages and fetches: taken in and handed out so far; failures: since most fetches succeeded.';
select recrawl_internal.copy_comments('recrawl.host_status');
comment on column recrawl.host_status.host is 'Its name or address, without port.';
comment on column recrawl.host_status.gap is 'Least time between two requests.';
comment on column recrawl.host_status.slot_every is
    'Time between two slots: the gap, and the window in which a request may start (the setting start_within).';
comment on column recrawl.host_status.price is
    'What a fetch must earn per day; the host''s own where its gap decides, else that of the budget.';
comment on column recrawl.host_status.capped is 'Whether its gap, not the budget, decides its price.';
comment on column recrawl.host_status.frequency is
    'Fetches per day that its pages were given at the last allocation, to a thousandth.';
comment on column recrawl.host_status.floor is 'Fetches per day that each of its pages gets at least.';
comment on column recrawl.host_status.pins_kept is
    'The share that its pages get of the fetches that pinned intervals ask for: less than 1 where its slots or the '
    'budget do not suffice.';
comment on column recrawl.host_status.next_slot_at is 'The first moment a request may start.';
comment on column recrawl.host_status.ready_at is 'When next_pages looks at it next.';
comment on column recrawl.host_status.pages is 'Pages taken in.';
comment on column recrawl.host_status.has_new is 'Whether some of them were never handed out.';
comment on column recrawl.host_status.failures is 'Failed fetches since most succeeded.';
comment on column recrawl.host_status.crawl_delay is 'What it asked for in its robots.txt, at most a minute.';
comment on column recrawl.host_status.max_pages is 'Takes in no more pages than this; null = the setting.';
comment on column recrawl.host_status.prior_changes is
    'With prior_days: its pages'' rates are Gamma distributed as if so many changes had been seen; null = as on all '
    'hosts.';
comment on column recrawl.host_status.prior_days is 'See prior_changes: in so many days.';
comment on column recrawl.host_status.blocked_until is
    'Nothing is handed out before; the year 9999 = for good, null = it is not blocked.';
grant select on recrawl.host_status to recrawl_reader;
