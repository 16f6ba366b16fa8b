-- Giving back, unfetched, what one next_pages call handed out. The slots are spent; the pages are due as before.

create or replace function recrawl_internal.release_at(t timestamptz, lease_id bigint, page_ids bigint[]) returns int
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    released int;
    hosts    bigint[];
begin
    perform check_isolation('release');
    perform from lease l where l.lease_id = release_at.lease_id order by l.round for update;

    with item as materialized (
        select l.round, i.*, p.host_id, p.state,
               coalesce(p.last_lease, 0) < l.lease_id as is_held,
               coalesce(p.last_lease, 0) < l.lease_id and (release_at.page_ids is null or i.page_id = any (release_at.page_ids)) as goes
        from (select * from lease l where l.lease_id = release_at.lease_id offset 0) l
        cross join lateral unnest(l.page_ids, l.slots, l.dues, l.held_dues) as i (page_id, slot, due, held_due)
        join page p on p.page_id = i.page_id
        where l.lease_until > t
        order by i.page_id
        for update of p
    ),
    told as (
        insert into inbox (host_id, page_id, old_due, new_due)
        select host_id, page_id, held_due, case when state = 'live' then due end from item where goes
        returning page_id, host_id
    ),
    due_again as (
        update page p set due_at = i.due from item i where p.page_id = i.page_id and i.goes
    ),
    kept as (
        select round, count(*) filter (where is_held) as unreported,
               array_agg(page_id order by page_id) as page_ids, array_agg(slot order by page_id) as slots,
               array_agg(due order by page_id) as dues, array_agg(held_due order by page_id) as held_dues
        from item
        where not goes
        group by round
    ),
    shrunk as (
        update lease l set
            unreported = k.unreported, page_ids = k.page_ids, slots = k.slots, dues = k.dues, held_dues = k.held_dues
        from kept k
        where l.lease_id = release_at.lease_id and l.round = k.round and k.unreported > 0
    ),
    ended as (
        delete from lease l
        where l.lease_id = release_at.lease_id
          and exists (select from item i where i.round = l.round)
          and not exists (select from kept k where k.round = l.round and k.unreported > 0)
    )
    select count(*), array_agg(distinct host_id) into released, hosts from told;
    -- In order of id, as array_agg(distinct) gives them.
    for i in 1 .. coalesce(cardinality(hosts), 0) loop
        perform free_host(hosts[i], lease_id, t);
    end loop;
    return released;
end $$;
comment on function recrawl_internal.release_at(timestamptz, bigint, bigint[]) is 'release at a given time.';

create or replace function recrawl.release(lease_id bigint, page_ids bigint[] default null) returns int
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return release_at(clock_timestamp(), lease_id, page_ids);
end $$;
comment on function recrawl.release(bigint, bigint[]) is 'Gives back, unfetched, all or some pages of a lease; returns how many. They are due as before.';
