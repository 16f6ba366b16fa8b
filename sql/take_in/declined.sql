-- What is declined was not requested: its slot is free again where its host has given none later. What robots.txt
-- denies was not either, but that may have been requested in the slot.

-- While their leases are locked, and before results end them. Of a page that has several results on a lease the first
-- counts. A slot that was given before default_gap grew stays used: it could be too close to the next one.
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
    'The slots of pages that results decline, the last one first; null = there are none.';
