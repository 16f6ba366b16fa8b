-- crawl_status: the state of the crawl now. The cost does not grow with the number of pages or hosts.

-- The row of the view crawl_status.
create or replace function crawl_now(
    t timestamptz, out last_report_at timestamptz, out fetches_per_second float8,
    out ready_wait interval, out hosts_ready bigint, out due bigint, out new_waiting bigint, out is_estimate boolean,
    out leased bigint, out leases bigint, out oldest_lease_at timestamptz, out next_ready_at timestamptz,
    out upkeep_at timestamptz, out worker_is_running boolean, out vitals_at timestamptz,
    out longest_transaction interval, out inbox_wait interval
)
language plpgsql volatile security definer as $$
-- plans: whole
begin
    select p.last_report_at, p.fetches_per_second into last_report_at, fetches_per_second from last_pulses(t) p;
    select w.ready_wait, w.hosts_ready into ready_wait, hosts_ready from hosts_waiting(t) w;
    select q.due, q.waiting_new, q.is_estimate into due, new_waiting, is_estimate from sample_queue(t, 100) q;
    select coalesce(sum(unreported), 0), count(distinct lease_id), min(handed_out_at)
    into leased, leases, oldest_lease_at
    from lease where lease_until > t;
    next_ready_at := next_ready_time(t);
    select from_micros(k.last_value),
           from_micros(w.last_value) between t - interval '5 seconds' and t + interval '1 second'
    into upkeep_at, worker_is_running
    from latest_tick k, worker_ticked w
    where k.is_called;
    worker_is_running := coalesce(worker_is_running, false);
    vitals_at := (select max(at) from vital);
    -- The oldest other transaction that has row locks or a snapshot, among those that may be seen. A login can see that
    -- a session of another login has a snapshot, but not since when. For that it must be a member of the other login or
    -- of pg_read_all_stats.
    longest_transaction := greatest(
        (select clock_timestamp() - min(xact_start) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
           and (backend_xid is not null or backend_xmin is not null)),
        (select clock_timestamp() - min(prepared) from pg_prepared_xacts where database = current_database()));
    inbox_wait := inbox_wait();
end $$;

create or replace view recrawl.crawl_status as
select c.as_of, s.paused, n.*
from (select clock_timestamp() as as_of offset 0) c
cross join lateral crawl_now(c.as_of) n
cross join setting s;
select describe_view('recrawl.crawl_status',
    'One row: the state of the crawl now. The cost of a query does not grow with the number of pages or hosts.',
    'as_of', 'The time of this answer.',
    'paused', 'True if the crawl is paused.',
    'last_report_at', 'The time of the last report; null = there was no report in the last 15 minutes, or no worker '
        'for a day.',
    'fetches_per_second', 'Reported fetches per second: over the last 5 minutes, or since the first report if that was '
        'later.',
    'ready_wait', 'The longest time that a ready host has waited for a crawler. null = no host is ready.',
    'hosts_ready', 'Ready hosts: a request may start now, and they have a page to fetch. Counted up to 1,000.',
    'due', 'Pages that were handed out before and are due again.',
    'new_waiting', 'Pages that were never handed out. A page that was added with a due time counts as new until upkeep '
        'has seen it.',
    'is_estimate', 'True if due and new_waiting are estimates from a sample.',
    'leased', 'Leased pages.',
    'leases', 'The number of leases that these pages belong to.',
    'oldest_lease_at', 'The time when the oldest of these leases began.',
    'next_ready_at', 'The first time at which a host has a page to fetch; null = no page waits (or only pages of hosts '
        'that are blocked until unblock_host), or the crawl is paused.',
    'upkeep_at', 'The time of the last upkeep, the regular work on the queue. A worker does it, or a crawler if no '
        'worker runs.',
    'worker_is_running', 'True if a worker did upkeep in the last 5 seconds.',
    'vitals_at', 'The time of the newest row of the view vitals.',
    'longest_transaction', 'The age of the oldest open transaction in this database, without the transaction that '
        'asks. A transaction counts if it has locked rows or keeps an old snapshot, and if the owner of recrawl may '
        'see it.',
    'inbox_wait', 'How long the oldest entry of the inbox has waited for upkeep; null = the inbox is empty.');
