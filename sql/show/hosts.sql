-- Hosts that a person should look at. The worker finds the hosts; their state is read when the view is read.

create or replace view recrawl.late_hosts as
select h.name as host, l.due, l.oldest_due,
       l.as_of - l.oldest_due as late,
       case when h.blocked_until > c.now then 'block'
            when greatest(next_slot(h, s),
                          h.busy_until) > c.now then 'gap'
            else 'crawler' end as waits_for,
       gap_of(h, s) as gap,
       case when h.blocked_until > c.now then readable(h.blocked_until) end as blocked_until,
       case when h.blocked_until > c.now then h.blocked_reason end as blocked_reason,
       l.as_of
from late_host l
cross join lateral (select * from host h where h.host_id = l.host_id offset 0) h
cross join setting s
cross join (select clock_timestamp() as now offset 0) c
order by l.oldest_due;
select describe_view('recrawl.late_hosts',
    'The 200 hosts whose late revisits have waited longest. A revisit is a fetch of a page that was handed out before. '
    'A worker finds the hosts every five minutes. waits_for and the block show the present state.',
    'host', 'Host name or address, without port.',
    'late', 'How late the oldest due revisit of the host was when the worker found it.',
    'waits_for', 'The reason for the wait. crawler: the host is ready. gap: a request started a moment ago, or the '
        'host is one_at_a_time and a page is leased. block: the host is blocked.',
    'gap', 'The least time between two requests to the host.',
    'blocked_until', 'The end of the block; null = the host is not blocked.');

create or replace view recrawl.capped_hosts as
select h.name as host, b.pages, b.gap, b.slot_every, b.wanted, b.frequency, b.half_gap_gain, b.as_of
from capped_hosts b
cross join lateral (select h.name from host h where h.host_id = b.host_id offset 0) h
order by b.half_gap_gain desc;
select describe_view('recrawl.capped_hosts',
    'The 200 hosts where a shorter gap would raise the result of the last allocation most, in this order.',
    'host', 'Host name or address, without port.');
