-- The queue at a glance, at a cost that does not grow with it: counts over large tables are taken from a sample of
-- their pages.

create or replace function recrawl_internal.sample_queue(
    t timestamptz, out due bigint, out waiting_new bigint, out oldest_due timestamptz, out next_ready_at timestamptz
)
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
-- plans: whole
declare
    blocks   constant int := 1000;     -- read of each table; a smaller one is read whole
    of_queue real := least(100, 100.0 * blocks / greatest(pg_relation_size('queue') / 8192, 1));
    of_new   real := least(100, 100.0 * blocks / greatest(pg_relation_size('new_page') / 8192, 1));
    found    bigint;
begin
    select count(*), min(due_at) into found, oldest_due from queue tablesample system (of_queue) where due_at <= t;
    due := round(found * 100 / of_queue);
    select count(*) into found from new_page tablesample system (of_new);
    waiting_new := round(found * 100 / of_new)
                   + (select count(*) from (select from inbox where new_rank is not null limit 100000) i);
    next_ready_at := next_ready_at_at(t);
end $$;
comment on function recrawl_internal.sample_queue(timestamptz) is
    'Counts, or for large tables estimates, what is due and what is new; when a host is ready next.';

create or replace view recrawl.queue_status as
select q.due + q.waiting_new as due,
       (select coalesce(sum(unreported), 0)::bigint from recrawl_internal.lease where lease_until > c.as_of) as leased,
       q.oldest_due,
       q.next_ready_at,
       q.waiting_new as new,
       s.paused,
       c.as_of
from (select clock_timestamp() as as_of offset 0) c
cross join lateral recrawl_internal.sample_queue(c.as_of) q
cross join recrawl_internal.setting s;
comment on view recrawl.queue_status is
    'One row: pages due (of which new: never handed out), leased, the oldest due time of a revisit, when a host is '
    'ready next. due, new and oldest_due are estimates from a sample once the queue is larger than 8 MB.';
comment on column recrawl.queue_status.due is 'Pages that are due, new ones included.';
comment on column recrawl.queue_status.leased is 'Pages that are out.';
comment on column recrawl.queue_status.oldest_due is 'The oldest due time of a revisit.';
comment on column recrawl.queue_status.next_ready_at is 'When a host is ready next; null = nothing waits.';
comment on column recrawl.queue_status.new is 'Pages that were never handed out.';
comment on column recrawl.queue_status.paused is 'Whether the crawl is paused.';
comment on column recrawl.queue_status.as_of is 'When this was found out.';
grant select on recrawl.queue_status to recrawl_reader;
grant execute on function recrawl_internal.sample_queue to recrawl_reader;
