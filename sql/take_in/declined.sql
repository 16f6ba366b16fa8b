-- Slots of declined pages. A declined page was not requested, so its slot is free again if its host has given no later
-- slot. The slot of a page that robots.txt denies stays used: the crawler may have requested robots.txt in that slot.

-- The caller must have locked the leases, and must call this before the results end the leases. If a page has several
-- results on one lease, the first result counts. A slot that was given before default_gap was last raised stays used:
-- it could be too close to the next slot.
create or replace function recrawl_internal.slots_of_declined(t timestamptz, results recrawl_internal.result[])
returns recrawl_internal.slot_of_host[]
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
begin
    return (
        select array_agg((p.host_id, l.slot, l.start_by)::slot_of_host order by l.slot desc)
        from (select distinct on (r.lease_id, r.page_id) r.lease_id, r.page_id, r.due_is
              from unnest(results) r
              where r.problem is null
              order by r.lease_id, r.page_id, r.ord) r
        cross join lateral (
            select h.slots[i.place] as slot, h.start_bys[i.place] as start_by
            from (select * from lease where lease.lease_id = r.lease_id offset 0) h      -- not by lease_until
            cross join lateral (select array_position(h.page_ids, r.page_id)) as i (place)
            where i.place is not null and h.lease_until > t
              and h.popped_at > (select default_gap_since from setting)
        ) l
        join page p on p.page_id = r.page_id and coalesce(p.last_lease, 0) < r.lease_id
        where r.due_is = 'declined');
end $$;
comment on function recrawl_internal.slots_of_declined(timestamptz, recrawl_internal.result[]) is
    'The slots of the pages that results decline, the last slot first; null if no page is declined.';
