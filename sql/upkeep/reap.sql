-- Takes back the unreported pages of leases that ended. A page gets its old due time. If the attempt before failed too,
-- it gets a due time after a back-off. A page may have been fetched since: its report came without a lease or after the
-- end of the lease. Such a page stays at the due time that it has in the queue during the lease (held_due).
-- The queue gets the changes through the inbox.
--
-- next_pages does not wait for this. If a lease has ended and is still there when the held due time of its page comes
-- (for example after an outage), the page is handed out again and gets another place in the queue. The old lease then
-- decides nothing about the page: a lease takes back only pages at the place that it gave them.
--
-- This waits for no lock. A locked lease is being reaped or reported by another transaction. If another transaction has
-- locked a page of a lease (for example, a report without a lease in a transaction that hangs), the lease stays until
-- its pages are free.

-- Takes back the pages of at most max_leases leases. Returns the number of pages that move in the queue.
create or replace function reap_at(t timestamptz, max_leases int) returns int
language plpgsql volatile as $$
-- plans: lookups; writes lease, page, inbox; locks lease, page by id (passing over locked ones)
declare
    horizon constant timestamptz := from_micros((select last_value from lease_horizon));
    given_back int;
    failed     int;                    -- attempts
begin
    -- The common case costs one index probe.
    if not exists (select from lease where lease_until between horizon and t) then
        return 0;
    end if;

    with
    -- Ended leases that no other transaction has locked.
    ended as materialized (
        select l.ctid as tid, l.* from lease l
        where l.lease_until between horizon and t
        order by l.lease_until limit max_leases for update skip locked
    ),
    -- Their pages that were not reported, at the places that these leases gave them.
    item as materialized (
        select e.tid as lease_tid, e.lease_id, e.handed_out_at, e.lease_until, i.page_id, i.due, i.held_due
        from ended e
        cross join lateral unnest(e.page_ids, e.dues, e.held_dues) as i (page_id, due, held_due)
        join page p on p.page_id = i.page_id
        cross join lateral (
            select from queue q where (q.host_id, q.due_at, q.page_id) = (p.host_id, i.held_due, i.page_id) offset 0
        ) q
        where coalesce(p.last_lease, 0) < e.lease_id
    ),
    -- Pages that no other transaction has locked, and their new due times: held_due if the page was fetched, a time
    -- after a back-off if the attempt before failed too, and otherwise the old one. If pull_in_leases() ended the
    -- lease, handed_out_at equals lease_until and does not say when the lease began. So its pages count as not fetched.
    -- A page is locked before its inbox entry is written, so the entries of a page stay in the order of its changes.
    free as materialized (
        select i.*, p.host_id, p.state, f.was_fetched,
               case when f.was_fetched then i.held_due
                    when p.attempts = 0 then i.due
                    else t + backoff('1 minute', '24 hours', p.attempts - 1) end as new_due
        from item i
        join page p on p.page_id = i.page_id
        cross join lateral (
            select coalesce(p.fetched_at >= i.handed_out_at and i.lease_until > i.handed_out_at, false) as was_fetched
        ) f
        where coalesce(p.last_lease, 0) < i.lease_id
        order by i.page_id for update of p skip locked
    ),
    -- Leases with an unreported page that another transaction has locked.
    incomplete as materialized (
        select i.lease_tid from item i where (i.page_id in (select f.page_id from free f)) is not true
    ),
    -- The other leases go.
    deleted as (
        delete from lease l using ended e
        where l.ctid = e.tid and (l.ctid in (select i.lease_tid from incomplete i)) is not true
        returning l.ctid as tid
    ),
    unreported as materialized (select * from free f where (f.lease_tid in (select d.tid from deleted d)) is true),
    -- The page has one more failed attempt, if it was not fetched. For planned_due and due_is see release_at().
    counted as (
        update page p set
            attempts = least(p.attempts + (not u.was_fetched)::int, 30000),
            due_at = u.new_due, planned_due = nullif(p.planned_due, u.due),
            due_is = case when not is_never(p.due_at) then p.due_is end
        from unreported u where p.page_id = u.page_id
    ),
    -- Pages move to their new due times. A page that died during its lease leaves the queue.
    moved as (
        insert into inbox (host_id, page_id, old_due)
        select u.host_id, u.page_id, u.held_due from unreported u where u.state <> 'live' or u.new_due <> u.held_due
        returning 1
    )
    select (select count(*) from moved), (select count(*) from unreported where not was_fetched)
    into given_back, failed;
    perform note_no_request(t, failed, 0) where failed > 0;
    return given_back;
end $$;
