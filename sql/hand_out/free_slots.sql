-- Gives back the slots of pages that were not requested, for release and report.

select make_type('slot_of_host', '(host_id bigint, slot timestamptz, start_by timestamptz)',
    'A time in which a request to a host may start.');

-- Updates hosts whose pages come back from a lease. slots: those that no request used; null = none. They are given back
-- from the last to the first. If a slot is the last of its host, last_start_by becomes the slot minus the gap. If the
-- slot before it was one step (a gap and a window) earlier, the new last_start_by equals the start_by of that slot. So
-- that slot is the last one now, and the next turn of the loop gives it back too. A slot that was more than one step
-- earlier does not come back.
create or replace function free_slots(t timestamptz, lease_id bigint, hosts bigint[], slots slot_of_host[]) returns void
language plpgsql volatile as $$
-- plans: lookups; writes host; locks host by id (those that wait for no page of the lease: passing over locked ones)
declare
    one  slot_of_host;
    locked bigint[];
begin
    -- First the one_at_a_time hosts that wait for a page of the lease: this waits for their locks, in order of id. The
    -- other hosts are locked after that, without waiting. So nothing is waited for while they are locked.
    perform end_wait(id, lease_id, t) from (select unnest(hosts) as id order by id) h;
    -- Hosts that another transaction has locked are passed over: that transaction probably gives a later slot, and then
    -- these slots do not come back. Waiting for it would delay the inbox entries of this transaction.
    locked := array(
        select h.host_id from host h where h.host_id = any (hosts) order by h.host_id for update skip locked);
    foreach one in array coalesce(slots, '{}') loop
        update host h set last_start_by = one.slot - gap_of(h, s)
        from setting s
        where h.host_id = one.host_id and h.host_id = any (locked) and h.last_start_by = one.start_by;
    end loop;
    perform renew_ready_at(id, t) from unnest(locked) as id;
end $$;
