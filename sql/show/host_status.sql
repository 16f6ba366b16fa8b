-- host_status: what is known of each host.

create or replace view recrawl.host_status as
select n.name as host,
       gap_of(h, s) as gap,
       slot_every(h, s) as slot_every,
       coalesce(t.price, common.price) as price,
       t.is_capped as capped, t.frequency,
       case when t.is_capped is not null then coalesce(t.min_frequency, common.min_frequency) end as min_frequency,
       case when h.last_start_by > '-infinity' then next_slot(h, s) end as next_slot_at,
       case when h.blocked_until > clock_timestamp() then readable(h.blocked_until) end as blocked_until,
       case when h.blocked_until > clock_timestamp() then h.blocked_reason end as blocked_reason,
       null_if_never(greatest(
           least(h.ready_at, case when h.new_class is not null then h.new_ready_at end),
           next_slot(h, s))) as ready_at,
       h.pages,
       h.head_new_id is not null as has_new,
       h.handed_out, h.failures, h.crawl_delay, h.one_at_a_time, n.max_pages, t.prior_changes, t.prior_days,
       case when t.is_capped is not null then coalesce(t.pins_kept, common.pins_kept, 1) end as pins_kept
from host h
-- With this join, `where host = …` uses the primary key of host_name: the table host has no index on the name.
join host_name n on n.host_id = h.host_id and n.name = h.name
cross join setting s
join host_terms common on common.host_id = 0
left join host_terms t on t.host_id = h.host_id;
select describe_view('recrawl.host_status',
    'One row for each host: its limits, its next slot, its block, and its part in the last allocation.',
    'host', 'Host name or address, without port.',
    'gap', 'The least time between two requests to the host.',
    'slot_every', 'Time between two slots: the gap plus the window in which a request may start (setting '
        'window_share).',
    'price', 'The smallest gain for which a page of the host gets one more fetch per day. A capped host has a price of '
        'its own.',
    'capped', 'True if the gap, and not the budget, limits the fetches of the host, or if a block of more than a day '
        'keeps it out of the allocation; null = it took no part in the last allocation.',
    'min_frequency', 'Fetches per day that a page of the host gets at least, if its interval is not pinned.',
    'pins_kept', 'The share of the fetches for pinned intervals that the pages of the host get. It is below 1 if the '
        'slots of the host or the budget are not enough.',
    'next_slot_at', 'The first time at which a request may start; null = the host had no request yet.',
    'ready_at', 'The time when next_pages looks at the host next; null = the host has no page to fetch, or is blocked '
        'until unblock_host.',
    'has_new', 'True if some of its pages were never handed out.',
    'failures', 'Failed requests since the count began. At a failure the count begins anew if fewer than half of the '
        'pages that were handed out since its beginning failed. It also begins anew when the host is blocked because '
        'of failures.',
    'prior_changes', 'The guess for a new page of the host: it starts as if recrawl had seen prior_changes changes in '
        'prior_days days. null = the guess is the same as for other hosts.',
    'blocked_until', 'The end of the block. The year 9999 = until unblock_host is called; null = the host is not '
        'blocked.');
