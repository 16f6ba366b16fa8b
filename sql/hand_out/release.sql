-- release: a crawler releases pages that it did not fetch. The pages get their old due times. A page that was new had
-- none: it is due at the slot that it got. The slots do not come back.

-- Takes unreported pages out of a lease. The caller has locked its rows.
create or replace function leave_lease(lease_id bigint, leaving bigint[]) returns void
language plpgsql volatile as $$
-- plans: lookups; writes lease; locks lease
begin
    with
    -- How many pages each row of the lease loses.
    gone as materialized (
        select l.round, count(*)::int as pages
        from lease l
        cross join lateral unnest(l.page_ids) as i (page_id)
        where l.lease_id = leave_lease.lease_id and (i.page_id in (select unnest(leaving))) is true
        group by l.round
    ),
    -- The other pages stay in the row.
    shrunk as (
        update lease l set
            unreported = l.unreported - g.pages,
            (page_ids, slots, start_bys, dues, held_dues) = (
                select array_agg(k.page_id order by k.page_id), array_agg(k.slot order by k.page_id),
                       array_agg(k.start_by order by k.page_id),
                       array_agg(k.due order by k.page_id), array_agg(k.held_due order by k.page_id)
                from unnest(l.page_ids, l.slots, l.start_bys, l.dues, l.held_dues)
                     as k (page_id, slot, start_by, due, held_due)
                where (k.page_id in (select unnest(leaving))) is not true)
        from gone g
        where l.lease_id = leave_lease.lease_id and l.round = g.round and l.unreported > g.pages
    )
    -- A row without unreported pages is deleted.
    delete from lease l using gone g
    where l.lease_id = leave_lease.lease_id and l.round = g.round and l.unreported <= g.pages;
end $$;

create or replace function release_at(
    t timestamptz, lease_id bigint, page_ids bigint[], slot_used boolean default false
) returns int
language plpgsql volatile as $$
-- plans: lookups; writes inbox, page; locks lease, page by id, host by id
declare
    released record;
begin
    perform check_isolation('release');
    perform from lease l where l.lease_id = release_at.lease_id order by l.round for update;

    -- The arrays are unpacked before the join. Otherwise each joined row would carry a copy of the whole lease.
    with
    -- The pages that are given back.
    item as materialized (
        select i.*, p.host_id
        from (select u.*
              from (select * from lease l where l.lease_id = release_at.lease_id offset 0) l  -- one index lookup
              cross join lateral unnest(l.page_ids, l.start_bys, l.dues, l.held_dues)
                   as u (page_id, start_by, due, held_due)
              where l.lease_until > t
                and (release_at.page_ids is null
                     or (u.page_id in (select unnest(release_at.page_ids))) is true)
              offset 0) i
        join page p on p.page_id = i.page_id and coalesce(p.last_lease, 0) < release_at.lease_id
        order by i.page_id
        for update of p
    ),
    -- An inbox entry moves each page in the queue, from held_due to the due time before the lease. Pages that are no
    -- longer live leave the queue.
    moved as (
        insert into inbox (host_id, page_id, old_due) select host_id, page_id, held_due from item
    ),
    -- The rows of the pages get the old due times too. planned_due is the due time before fetch_now or a hint moved the
    -- page. If it is the old due time, the page is back where it was planned. A page that became done or declined
    -- during the lease is due again.
    due_again as (
        update page p set
            due_at = i.due, planned_due = nullif(p.planned_due, i.due),
            due_is = case when not is_never(p.due_at) then p.due_is end
        from item i where p.page_id = i.page_id
    )
    select array_agg(page_id) as page_ids, array_agg(distinct host_id order by host_id) as hosts,
           count(*) filter (where start_by < t and slot_used is not true) as missed
    into released
    from item;
    perform leave_lease(lease_id, released.page_ids);
    perform note_no_request(t, 0, released.missed::int) where released.missed > 0;
    perform end_wait(id, lease_id, t) from unnest(released.hosts) as id;
    return coalesce(cardinality(released.page_ids), 0);
end $$;

create or replace function recrawl.release(
    lease_id bigint, page_ids bigint[] default null, slot_used boolean default false
) returns int
language plpgsql volatile security definer as $$
begin
    return release_at(clock_timestamp(), lease_id, page_ids, slot_used);
end $$;
comment on function recrawl.release is
'Gives pages back that you did not fetch. Returns the number of these pages. They get the due times that they had
before the call of next_pages. A page that was new had none: it becomes due at its fetch_at.

* lease_id: the lease, from next_pages.
* page_ids: the pages. null = all pages of the lease that are not reported or released yet.
* slot_used: true if you used the slot of each page for another request to its host, for example for robots.txt. false =
  you sent no request: pages whose slots have passed count as missed in the view vitals.

The slots of these pages do not come back: the next request to their hosts starts one gap after the last slot that was
given.';
grant execute on function recrawl.release to recrawl_crawler;
