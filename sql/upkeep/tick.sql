-- The queue's upkeep in small steps: horizons up, expired leases back, inbox into the queue. The worker ticks all the
-- time; where no worker runs, next_pages does, twice a second over all crawlers and whenever it would return too
-- little.

create or replace function recrawl_internal.between_ticks() returns interval
language sql immutable parallel safe
begin atomic select interval '500 milliseconds'; end;
comment on function recrawl_internal.between_ticks() is 'After how long without a tick next_pages does one.';

create or replace function recrawl_internal.tick_at(t timestamptz, max_leases int, max_entries int) returns int
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
declare
    pulled_in int := 0;
begin
    -- Horizons first: what this transaction changes below may still be rolled back.
    perform setval('next_tick', micros(t + between_ticks())), advance_horizons(t);
    if clock_was_ahead(t) then
        pulled_in := pull_in(t, max_entries);
    end if;
    perform measure_budget(t);
    return pulled_in + reap_at(t, max_leases) + drain_at(t, max_entries) + take_links_in(t, max_entries);
end $$;
comment on function recrawl_internal.tick_at(timestamptz, int, int) is
    'One small step of upkeep; returns how many pages it moved.';

-- A clock that jumped back must not stop the ticking.
create or replace function recrawl_internal.tick_is_due(next_tick bigint, t timestamptz) returns boolean
language sql stable parallel safe
begin atomic
    select recrawl_internal.from_micros(next_tick) not between t and t + interval '1 minute';
end;
comment on function recrawl_internal.tick_is_due(bigint, timestamptz) is 'Whether nobody has ticked for half a second.';

create or replace function recrawl_internal.tick(max_leases int, max_entries int) returns int
language sql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
    select setval('worker_ticked', micros(clock_timestamp())), rotate_log_at(clock_timestamp());
    select tick_at(clock_timestamp(), max_leases, max_entries)
$$;
comment on function recrawl_internal.tick(int, int) is 'What the worker calls.';
grant execute on function recrawl_internal.tick to recrawl_worker;
