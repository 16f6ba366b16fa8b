-- queue_status: a summary of the queue: counts of crawl_status, and the oldest due time.

create or replace view recrawl.queue_status as
select c.due, c.new_waiting, c.leased, o.oldest as oldest_due, o.is_exact as oldest_is_exact, c.next_ready_at, c.paused,
       c.as_of, c.is_estimate
from recrawl.crawl_status c
cross join lateral oldest_due(c.as_of) o;
select describe_view('recrawl.queue_status',
    'One row with counts of pages: due again, new and leased. If the queue is larger than 800 kB, the counts are '
    'estimates from a sample. A revisit is a fetch of a page that was handed out before.',
    'oldest_due', 'The oldest due time of a revisit, also on blocked hosts. null = no revisit is due. If '
        'oldest_is_exact is false, null can also mean that none was found.',
    'oldest_is_exact', 'True if no revisit has an earlier due time. False if there are very many hosts: then only the '
        'hosts in the view late_hosts are compared. Also false if more than 20 hosts would have to be checked.');
