-- Leases that ran out give their unreported pages back: at their old due time, or after a back-off when it happens
-- again. A page that was fetched since, by whoever sent no lease or sent it too late, keeps the due time it has. Lock
-- order: lease (skipping locked ones: a report holds those), page by id. The queue learns of it through the inbox.

create or replace function recrawl_internal.reap_at(t timestamptz, max_leases int) returns int
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes lease, page, inbox; locks lease (passing over locked ones), page by id
declare
    horizon constant timestamptz := from_micros((select last_value from lease_horizon));
    given_back int;
    expired    int;
begin
    -- The common case, at the price of one index probe.
    perform from lease where lease_until between horizon and t limit 1;
    if not found then
        return 0;
    end if;

    with
    -- Each is somebody's who reaps, or reports.
    expired as (
        delete from lease l
        using (select ctid as tid from lease
               where lease_until between horizon and t
               order by lease_until limit max_leases
               for update skip locked) e
        where l.ctid = e.tid
        returning l.*
    ),
    -- Their pages that were not reported: due as before, or later each time it happens again.
    unreported as materialized (
        select p.page_id, p.host_id, p.state, i.held_due, f.was_fetched,
               case when f.was_fetched then i.held_due
                    when p.attempts = 0 then i.due
                    else t + backoff('1 minute', '24 hours', p.attempts - 1) end as due
        from expired e
        cross join lateral unnest(e.page_ids, e.dues, e.held_dues) as i (page_id, due, held_due)
        join page p on p.page_id = i.page_id
        -- Not if the lease has no duration: pull_in_leases() ended it, whose due times are no good.
        cross join lateral (
            select coalesce(p.fetched_at >= e.popped_at and e.lease_until > e.popped_at, false) as was_fetched
        ) f
        where coalesce(p.last_lease, 0) < e.lease_id
        order by p.page_id
        for update of p                -- so that the inbox has the entries of a page in the order of its changes
    ),
    counted as (
        update page p set attempts = least(p.attempts + (not u.was_fetched)::int, 30000), due_at = u.due
        from unreported u
        where p.page_id = u.page_id
    ),
    -- A page that died meanwhile leaves the queue for good.
    told as (
        insert into inbox (host_id, page_id, old_due, new_due)
        select u.host_id, u.page_id, u.held_due, case when u.state = 'live' then u.due end
        from unreported u
        where u.state <> 'live' or u.due <> u.held_due
        returning 1
    )
    select (select count(*) from told),
           (select count(nextval('expired_count')) from unreported where not was_fetched)
    into given_back, expired;
    return given_back;
end $$;
comment on function recrawl_internal.reap_at(timestamptz, int) is
    'Gives back the unreported pages of at most max_leases expired leases; returns how many pages.';

-- What somebody's open transaction keeps from being given back.
create or replace function recrawl_internal.waiting_hosts(t timestamptz) returns bigint[]
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
begin
    return array(
        select distinct p.host_id
        from (select lease_id, unnest(page_ids) as page_id
              from lease where lease_until between from_micros((select last_value from lease_horizon)) and t) l
        -- Joined as it stands: before PostgreSQL 18 the scan of the horizon hides what else costs.
        cross join lateral (
            select p.host_id from page p
            where p.page_id = l.page_id and coalesce(p.last_lease, 0) < l.lease_id
            offset 0
        ) p);
end $$;
comment on function recrawl_internal.waiting_hosts(timestamptz) is
    'Hosts with unreported pages of leases that ran out by a time and were not taken back.';
