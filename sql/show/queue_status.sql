-- queue_status: a summary of the queue. Large tables are counted by a sample of their blocks, so that the cost does not
-- grow with the queue.

-- The row of the view queue_status.
create or replace function queue_now(
    t timestamptz, out due bigint, out waiting_new bigint, out is_estimate boolean,
    out oldest_due timestamptz, out oldest_is_exact boolean, out next_ready_at timestamptz, out leased bigint
)
language plpgsql volatile security definer as $$
-- plans: whole
begin
    select q.due, q.waiting_new, q.is_estimate into due, waiting_new, is_estimate from sample_queue(t, 200) q;
    select o.oldest, o.is_exact into oldest_due, oldest_is_exact from oldest_due(t) o;
    select coalesce(sum(unreported), 0) into leased from lease where lease_until > t;
    next_ready_at := next_ready_time(t);
end $$;

create or replace view recrawl.queue_status as
select q.due, q.waiting_new as new_waiting, q.leased, q.oldest_due, q.oldest_is_exact, q.next_ready_at, s.paused,
       c.as_of, q.is_estimate
from (select clock_timestamp() as as_of offset 0) c
cross join lateral queue_now(c.as_of) q
cross join setting s;
select describe_view('recrawl.queue_status',
    'One row with counts of pages: due again, new and leased. If the queue is larger than 1.6 MB, the counts are '
    'estimates from a sample. A revisit is a fetch of a page that was handed out before.',
    'due', 'Pages that were handed out before and are due again.',
    'new_waiting', 'Pages that were never handed out. A page that was added with a due time counts as new until upkeep '
        'has seen it.',
    'leased', 'Leased pages.',
    'oldest_due', 'The oldest due time of a revisit, also on blocked hosts. null = no revisit is due. If '
        'oldest_is_exact is false, null can also mean that none was found.',
    'next_ready_at', 'The first time at which a host has a page to fetch; null = no page waits (or only pages of hosts '
        'that are blocked until unblock_host), or the crawl is paused.',
    'paused', 'True if the crawl is paused.',
    'as_of', 'The time of this answer.',
    'is_estimate', 'True if due and new_waiting are estimates from a sample.',
    'oldest_is_exact', 'True if no revisit has an earlier due time. False if there are very many hosts: then only the '
        'hosts in the view late_hosts are compared. Also false if more than 20 hosts would have to be checked.');
