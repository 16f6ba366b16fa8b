-- queue_status: a summary of the queue. Large tables are counted by a sample of their blocks, so that the cost does not
-- grow with the queue.

-- The number of due revisits and of new pages. blocks: how many blocks of each table are read. A smaller table is read
-- whole.
create or replace function sample_queue(
    t timestamptz, blocks int, out due bigint, out waiting_new bigint, out is_estimate boolean
)
language plpgsql volatile as $$
-- plans: lookups
declare
    b         record;
    revisits  float8 := 0;
    new_pages float8 := 0;
begin
    is_estimate := greatest(blocks_of('queue'), blocks_of('new_page'), blocks_of('inbox')) > blocks;
    for b in select * from sampled_blocks('queue', blocks) loop
        revisits := revisits + b.times * (
            select count(*) from queue where ctid >= b.first and ctid < b.past and due_at <= t);
    end loop;
    for b in select * from sampled_blocks('new_page', blocks) loop
        new_pages := new_pages + b.times * (
            select count(*) from new_page where ctid >= b.first and ctid < b.past);
    end loop;
    for b in select * from sampled_blocks('inbox', blocks) loop
        new_pages := new_pages + b.times * (
            select count(*) from inbox
            where ctid >= b.first and ctid < b.past and old_due is null and old_rank is null and not revived);
    end loop;
    due := round(revisits);
    waiting_new := round(new_pages);
end $$;

-- The oldest due time of a revisit. is_exact: no other host can have an older one. head_due of a host is never after
-- the due times of its queue, but it may be before them. Therefore hosts are taken in order of head_due, and the queue
-- of each says how old its oldest revisit really is. If there are too many hosts to read all of them, the hosts are
-- used that a worker found last (late_host). Blocked hosts are included.
create or replace function oldest_due(t timestamptz, out oldest timestamptz, out is_exact boolean)
language plpgsql volatile as $$
-- plans: whole
declare
    at_first constant int := 20;       -- the number of hosts that are checked
    checked  int := 0;
    first    record;
begin
    is_exact := blocks_of('host') <= 2000;
    for first in
        select f.host_id, f.head_due
        from (
            select h.host_id, h.head_due from host h where is_exact
            union all
            select h.host_id, h.head_due
            from late_host l
            cross join lateral (select * from host h where h.host_id = l.host_id offset 0) h
            where not is_exact
        ) f
        where f.head_due <= t
        order by f.head_due
        limit at_first + 1
    loop
        exit when oldest <= first.head_due;
        checked := checked + 1;
        if checked > at_first then
            is_exact := false;         -- this host may have an older one
            exit;
        end if;
        oldest := least(oldest, oldest_due_of(first.host_id, first.head_due, t));
    end loop;
end $$;

-- The oldest due time of the revisits of a host; null if no revisit is due. head_due: where the scan starts.
create or replace function oldest_due_of(host_id bigint, head_due timestamptz, t timestamptz) returns timestamptz
language plpgsql volatile as $$
-- plans: lookups
begin
    return (select q.due_at from queue q
            where q.host_id = oldest_due_of.host_id and q.due_at between oldest_due_of.head_due and t
            order by q.due_at limit 1);
end $$;

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
comment on view recrawl.queue_status is
    'One row with counts of pages: due again, new and leased. If the queue is larger than 1.6 MB, the counts are '
    'estimates from a sample. A revisit is a fetch of a page that was handed out before.';
comment on column recrawl.queue_status.due is 'Pages that were handed out before and are due again.';
comment on column recrawl.queue_status.new_waiting is
    'Pages that were never handed out. A page that was added with a due time counts as new until upkeep has seen it.';
comment on column recrawl.queue_status.leased is 'Leased pages.';
comment on column recrawl.queue_status.oldest_due is
    'The oldest due time of a revisit, also on blocked hosts. null = no revisit is due. If oldest_is_exact is false, '
    'null can also mean that none was found.';
comment on column recrawl.queue_status.next_ready_at is
    'The first time at which a host has a page to fetch; null = no page waits (or only pages of hosts that are blocked '
    'until unblock_host), or the crawl is paused.';
comment on column recrawl.queue_status.paused is 'True if the crawl is paused.';
comment on column recrawl.queue_status.as_of is 'The time of this answer.';
comment on column recrawl.queue_status.is_estimate is 'True if due and new_waiting are estimates from a sample.';
comment on column recrawl.queue_status.oldest_is_exact is
    'True if no revisit has an earlier due time. False if there are very many hosts: then only the hosts '
    'in the view late_hosts are compared. Also false if more than 20 hosts would have to be checked.';
