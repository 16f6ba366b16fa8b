-- next_ready_at: the time at which a crawler that got no page should ask again.

-- next_ready_at at a given time.
create or replace function next_ready_time(t timestamptz) returns timestamptz
language plpgsql volatile as $$
-- plans: lookups
declare
    s          setting;
    -- When to ask again if there is work now. Example: a host is ready, but the caller got no page of it: another
    -- transaction has locked the host, or the host became ready just now.
    soon       constant timestamptz := t + interval '20 milliseconds';
    since      constant timestamptz := from_micros((select last_value from host_horizon));
    revisit_at timestamptz;
    new_at     timestamptz;
    lease_ends timestamptz;
    ready_at   timestamptz;
begin
    select * into s from setting;
    if s.paused then
        return null;
    elsif exists (select from inbox where at >= from_micros((select last_value from inbox_horizon))) then
        return soon;
    end if;
    -- A host may still be in its gap although its place in the queue is due. So two times count: the next slot of such
    -- hosts, and the place of the next host.
    revisit_at := coalesce(
        (select t from host h
         where h.ready_at between since and t and next_slot(h, s) <= t limit 1),
        least((select min(next_slot(h, s)) from host h
               where h.ready_at between since and t),
              (select h.ready_at from host h
               where h.ready_at > t order by h.ready_at limit 1)));
    new_at := (
        select min(coalesce(
            (select t from host h
             where h.new_class = c.class and h.new_ready_at between c.since and t
               and next_slot(h, s) <= t limit 1),
            least((select min(next_slot(h, s)) from host h
                   where h.new_class = c.class and h.new_ready_at between c.since and t),
                  (select h.new_ready_at from host h
                   where h.new_class = c.class and h.new_ready_at > t
                   order by h.new_ready_at limit 1))))
        from occupied_classes(0) c);
    if new_at is not null then
        new_at := greatest(new_at, room_in_budget_from(t, s));
    end if;
    -- The end of the first lease, because its pages go back then. If it ended more than a minute ago, another
    -- transaction has locked it: ask once a second.
    lease_ends := (
        select case when l.lease_until < t - interval '1 minute' then t + interval '1 second' else l.lease_until end
        from lease l
        where l.lease_until >= from_micros((select last_value from lease_horizon))
        order by l.lease_until limit 1);
    ready_at := least(revisit_at, new_at, lease_ends);
    return case when ready_at <= t then soon else null_if_never(ready_at) end;
end $$;

create or replace function recrawl.next_ready_at() returns timestamptz
language plpgsql volatile security definer as $$
begin
    return next_ready_time(clock_timestamp());
end $$;
comment on function recrawl.next_ready_at is
'Returns the time when you should call next_pages again after it returned no page. The time is never in the past. null
= no page waits (or only pages of hosts that are blocked until unblock_host), or the crawl is paused.';
grant execute on function recrawl.next_ready_at to recrawl_crawler;
