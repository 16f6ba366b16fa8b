-- Hosts that a person should look at. The worker finds the hosts; their state is read when the view is read.

create or replace view recrawl.late_hosts as
select h.name as host,
       l.due,
       l.oldest_due,
       l.as_of - l.oldest_due as late,
       case when h.blocked_until > c.now then 'block'
            when greatest(h.last_start_by + recrawl_internal.host_gap(h.gap, h.crawl_delay, s.default_gap),
                          h.busy_until) > c.now then 'gap'
            else 'crawler' end as waits_for,
       recrawl_internal.host_gap(h.gap, h.crawl_delay, s.default_gap) as gap,
       case when h.blocked_until > c.now then recrawl_internal.readable(h.blocked_until) end as blocked_until,
       case when h.blocked_until > c.now then h.blocked_reason end as blocked_reason,
       l.as_of
from recrawl_internal.late_host l
cross join lateral (select * from recrawl_internal.host h where h.host_id = l.host_id offset 0) h
cross join recrawl_internal.setting s
cross join (select clock_timestamp() as now offset 0) c
order by l.oldest_due;
comment on view recrawl.late_hosts is
    'The 200 hosts whose revisits have been due for longest, found by a worker every five minutes; what they wait '
    'for, and their blocks, as of now.';
select recrawl_internal.copy_comments('recrawl.late_hosts');
comment on column recrawl.late_hosts.host is 'Its name or address, without port.';
comment on column recrawl.late_hosts.late is 'How long the oldest of them had been due.';
comment on column recrawl.late_hosts.waits_for is
    'Whom the next of them waits for: crawler (the host is free), gap (it was asked a moment ago, or a page of it is '
    'out), or block.';
comment on column recrawl.late_hosts.gap is 'Least time between two requests.';
comment on column recrawl.late_hosts.blocked_until is 'No page is handed out before; null = it is not blocked.';

create or replace view recrawl.held_back as
select h.name as host, b.pages, b.gap, b.slot_every, b.wanted, b.frequency, b.gain, b.as_of
from recrawl_internal.held_back b
cross join lateral (select h.name from recrawl_internal.host h where h.host_id = b.host_id offset 0) h
order by b.gain desc;
comment on view recrawl.held_back is
    'The 200 hosts whose gap costs most of the objective, by the last allocation, those first that cost most.';
select recrawl_internal.copy_comments('recrawl.held_back');
comment on column recrawl.held_back.host is 'Its name or address, without port.';

grant select on recrawl.late_hosts, recrawl.held_back to recrawl_reader;
