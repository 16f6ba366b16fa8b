-- extend_lease: makes a lease longer. In the queue its pages get later due times (held_dues of the lease), so that no
-- call finds them. These due times change immediately, with the hosts locked. Through the inbox they would change
-- later, and another call of next_pages could find the pages first.

-- Whether an unreported live page of the lease has another due time in the queue than its held_due. The caller has
-- locked the hosts.
create or replace function has_lost_pages(lease_id bigint) returns boolean
language plpgsql stable as $$
-- plans: lookups
begin
    return exists (
        select from lease l
        cross join lateral unnest(l.page_ids, l.held_dues) as i (page_id, held_due)
        cross join lateral (
            select p.host_id from page p
            where p.page_id = i.page_id and p.state = 'live' and coalesce(p.last_lease, 0) < l.lease_id
            offset 0
        ) p
        where l.lease_id = has_lost_pages.lease_id
          and not exists (
              select from queue q
              where (q.host_id, q.due_at, q.page_id) = (p.host_id, i.held_due, i.page_id)
              offset 0));
end $$;

create or replace function extend_lease_at(t timestamptz, lease_id bigint, by interval) returns timestamptz
language plpgsql volatile as $$
-- plans: lookups; writes queue, host, lease; locks lease, host by id, queue
declare
    s          setting;
    lease_ends timestamptz;
    held_until timestamptz;            -- no page of the lease is due before this
begin
    perform check_isolation('extend_lease');
    select * into s from setting;
    if by is null or in_seconds(by) not between interval '1 second' and s.longest_lease then
        perform refuse(format('extend_lease: by must lie between 1 second and the setting longest_lease (%s), got %s',
                              justify_hours(s.longest_lease), coalesce(by::text, 'null')));
    end if;

    -- Upkeep deletes the rows of a lease that has ended. It skips rows that are locked here.
    select max(l.lease_until) into lease_ends
    from (select * from lease l where l.lease_id = extend_lease_at.lease_id order by l.round for update) l
    where l.lease_until > t;
    if lease_ends is null then
        return null;
    end if;
    -- No later than the latest end that next_pages could give. But a lease never becomes shorter.
    lease_ends := greatest(lease_ends, least(lease_ends + in_seconds(by), t + s.longest_lease + s.max_ahead));
    held_until := lease_ends + longest_ahead();

    perform from host h
    where h.host_id in (
        select p.host_id
        from lease l cross join lateral unnest(l.page_ids) as i (page_id)
        join lateral (select p.host_id from page p where p.page_id = i.page_id offset 0) p on true
        where l.lease_id = extend_lease_at.lease_id)
    order by h.host_id
    for update;

    -- The wait for the hosts may have been so long that the lease has ended and another call has got its pages.
    if has_lost_pages(lease_id) then
        return null;
    end if;

    with
    -- All pages of the lease, with their places in its arrays. A page that was reported or deleted keeps its held_due.
    item as materialized (
        select l.round, i.page_id, i.held_due, p.host_id, i.place,
               case when p.is_leased then greatest(i.held_due, held_until) else i.held_due end as new_held_due
        from lease l
        cross join lateral unnest(l.page_ids, l.held_dues) with ordinality as i (page_id, held_due, place)
        left join lateral (
            select p.host_id, coalesce(p.last_lease, 0) < l.lease_id as is_leased from page p
            where p.page_id = i.page_id
            offset 0
        ) p on true
        where l.lease_id = extend_lease_at.lease_id
    ),
    -- The queue gets the new due times.
    moved as (
        update queue q set due_at = i.new_held_due
        from item i
        where i.held_due < i.new_held_due and (q.host_id, q.due_at, q.page_id) = (i.host_id, i.held_due, i.page_id)
    ),
    -- A one_at_a_time host waits until the new end of the lease, which is after t.
    busy as (
        update host h set
            busy_until = lease_ends,
            ready_at = greatest(h.head_due, next_slot(h, s), h.blocked_until, lease_ends),
            new_ready_at = greatest(next_slot(h, s), h.blocked_until, lease_ends)
        from (select distinct host_id from item) i
        where h.host_id = i.host_id and h.busy_lease = extend_lease_at.lease_id
    )
    update lease l set
        lease_until = lease_ends,
        held_dues = (select array_agg(i.new_held_due order by i.place) from item i where i.round = l.round)
    where l.lease_id = extend_lease_at.lease_id;
    return lease_ends;
end $$;

create or replace function recrawl.extend_lease(lease_id bigint, by interval) returns timestamptz
language sql volatile security definer as $$
    select extend_lease_at(clock_timestamp(), lease_id, by)
$$;
comment on function recrawl.extend_lease is
'Makes a lease longer, so that you keep its pages. Returns the new end of the lease: at most now plus the settings
longest_lease and max_ahead.

* lease_id: the lease, from next_pages.
* by: the time to add to the end of the lease, from 1 second to the setting longest_lease.

null means that the lease has already ended. Then another crawler may have the pages: do not request them.';
grant execute on function recrawl.extend_lease to recrawl_crawler;
