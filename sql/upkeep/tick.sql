-- The upkeep of the queue in small steps: move the horizons (where index scans begin), add URLs that were set aside,
-- bring back pages that their site moved back, repair times after the clock was ahead, measure how much crawlers can
-- fetch (if the budget is `measured`), watch the logins, take back pages of ended leases, apply the inbox. The worker
-- calls tick() all the time. Without a worker, next_pages does a tick every half second (all crawlers together). Any
-- call of next_pages that would return too few pages does the last two steps.

-- One small step of upkeep. Returns 0 if nothing is left to do now, or if another transaction holds all that it tried.
create or replace function tick_at(t timestamptz, max_leases int, max_entries int) returns int
language plpgsql volatile as $$
declare
    pause     constant interval := '500 milliseconds';     -- the least time between two ticks that next_pages does
    was_ahead constant boolean := remember_tick(t);
    last_tick constant timestamptz := from_micros((select last_value from next_tick)) - pause;
    done      int;
begin
    -- Horizons move first. They are sequences, and a rollback does not set them back. If they moved after the
    -- changes below, a rollback could bring back rows that are below a horizon.
    perform setval('next_tick', micros(t + pause)), advance_horizons(t);
    -- add_set_aside_urls() comes before the parts that lock hosts, because it may wait for locks of new keys: up to 50
    -- times 5 ms. Therefore the new keys that it locks stay locked while the inbox is drained.
    done := add_set_aside_urls(t);
    if date_bin('10 minutes', t, 'epoch') > date_bin('10 minutes', last_tick, 'epoch') then
        done := done + bring_back(t, max_entries);
    end if;
    if was_ahead then
        done := done + pull_in(t, max_entries);
    end if;
    perform measure_budget(t), watch_logins(t);
    done := done + reap_at(t, max_leases);
    return done + drain_at(t, max_entries);
end $$;

-- One step of upkeep; the worker calls it.
create or replace function tick(max_leases int, max_entries int) returns int
language sql volatile security definer as $$
    select setval('worker_ticked', micros(clock_timestamp())), rotate_log_at(clock_timestamp());
    select tick_at(clock_timestamp(), max_leases, max_entries)
$$;
grant execute on function tick to recrawl_worker;
