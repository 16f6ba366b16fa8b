-- Shows whether crawlers are fast enough: the number of hosts that could give a page now, at most 1,000, and how long
-- the first of them has waited for a crawler. A host can have a due place in a queue of hosts while it is in its gap.
-- It counts only after the gap. New pages that the budget has no room for do not count.
create or replace function hosts_waiting(t timestamptz, out hosts_ready bigint, out ready_wait interval)
language plpgsql volatile as $$
-- plans: lookups
declare
    s        setting;
    most     constant int := 1000;
    has_room boolean;
    room_at  timestamptz;              -- since when the budget has had room for one more new page
begin
    select * into s from setting;
    has_room := room_in_budget_from(t, s) <= t;
    room_at := (
        select budget_reaches(f.last_value, n.last_value, s) from fetch_count f, new_count n);
    select count(distinct w.host_id), t - min(w.since) into hosts_ready, ready_wait
    from (
        (select h.host_id, greatest(h.ready_at, next_slot(h, s)) as since
         from host h
         where h.ready_at between from_micros((select last_value from host_horizon)) and t and next_slot(h, s) <= t
         order by h.ready_at
         limit most)
        union all
        (select n.host_id, greatest(n.since, case when room_at <= t then room_at end)
         from occupied_classes(0) c
         cross join lateral (
             select h.host_id, greatest(h.new_ready_at, next_slot(h, s)) as since
             from host h
             where h.new_class = c.class and h.new_ready_at between c.since and t and next_slot(h, s) <= t
             order by h.new_ready_at
             limit most
         ) n
         where has_room
         limit most)
    ) w;
    hosts_ready := least(hosts_ready, most);
end $$;
