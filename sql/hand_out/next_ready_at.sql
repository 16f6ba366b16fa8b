-- When a crawler that got nothing should ask again.

create or replace function recrawl_internal.next_ready_at_at(t timestamptz) returns timestamptz
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
begin
    return (
        select case
            when exists (select from inbox where at >= from_micros((select last_value from inbox_horizon))) then t
            when first.wanted < 'infinity' then greatest(first.wanted, t)
        end
        from setting,
             (select least(
                 (select ready_at
                  from host
                  where ready_at >= from_micros((select last_value from host_horizon))
                    and host_id <> all ((select waiting_hosts(t - longest_ahead()))::bigint[])
                  order by ready_at limit 1),
                 (select min(n.ready_at)
                  from occupied_classes(0) as c
                  cross join lateral (
                      select h.new_ready_at as ready_at
                      from host h
                      where h.new_class = c.class and h.new_ready_at >= c.since
                        and h.host_id <> all ((select waiting_hosts(t - longest_ahead()))::bigint[])
                      order by h.new_ready_at limit 1
                  ) n),
                 -- One that ran out long ago is locked by somebody.
                 (select case when lease_until < t - interval '1 minute' then t + interval '1 second'
                              else lease_until end
                  from lease
                  where lease_until >= from_micros((select last_value from lease_horizon))
                  order by lease_until limit 1)
             ) as wanted) first
        where not paused);
end $$;
comment on function recrawl_internal.next_ready_at_at(timestamptz) is 'next_ready_at at a given time.';

create or replace function recrawl.next_ready_at() returns timestamptz
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return next_ready_at_at(clock_timestamp());
end $$;
comment on function recrawl.next_ready_at() is
    'When to ask next_pages again; null when nothing waits or the crawl is paused.';
grant execute on function recrawl.next_ready_at to recrawl_crawler;
