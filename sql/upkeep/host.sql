-- Changes a host after reports, robots.txt, acts of people and the drain: blocks it, counts its failures, forgives a
-- strike, moves its next slot, sets its crawl delay, ends its wait for a leased page. The functions lock the rows of
-- the hosts that they change. Several hosts are locked in order of id, or without waiting.

-- Computes again when a host is ready, after one of its columns changed.
create or replace function renew_ready_at(host_id bigint, t timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups; writes host; locks host
begin
    update host h set
        ready_at = greatest(h.head_due, when_free(h, s, t)),
        new_ready_at = when_free(h, s, t)
    from setting s
    where h.host_id = renew_ready_at.host_id;
end $$;

-- Blocks a host until a time; null ends the block. Crawlers that hold pages of the host learn of the block by the
-- answer of report() and by blocked_pages(). There is no NOTIFY, because its queue belongs to the whole server: any
-- login can fill the queue, and then every NOTIFY raises.
create or replace function block_until(host_id bigint, until timestamptz, reason text, strikes smallint, t timestamptz)
returns void
language sql volatile as $$
-- plans: lookups; writes host; locks host
    update host h set blocked_until = until, blocked_reason = reason, strikes = block_until.strikes
    where h.host_id = block_until.host_id;
    select renew_ready_at(host_id, t)
$$;

-- Blocks a host that answered 429 or 503, or that keeps failing. The block lasts 60 seconds, doubled by each further
-- strike, at most a day, and 10 % more or less. For the first strike the time of Retry-After is used instead. Later
-- strikes use it only if it is longer: otherwise a host that always refuses and says "1 second" would get a request
-- every second.
--
-- Each report in which the host gave a page forgives one strike. Half an hour without a block forgives all strikes. A
-- failure while the host is already blocked comes from a request that began before the block: it adds no strike, but a
-- longer Retry-After extends the block.
create or replace function strike_host(host_id bigint, retry_after interval, reason text, t timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups; locks host
declare
    h        host;
    earlier  smallint;                 -- strikes before this one
    strikes  smallint;                 -- with this one
    until    timestamptz;
    asked    constant timestamptz :=
        case when retry_after is not null then t + least(greatest(retry_after, '1 second'), '24 hours') end;
begin
    select * into h from host where host.host_id = strike_host.host_id for update;
    earlier := case when h.blocked_until < t - interval '30 minutes' then 0 else h.strikes end;
    if h.blocked_until > t then
        perform block_until(host_id, asked, h.blocked_reason, earlier, t) where asked > h.blocked_until;
    else
        until := case when asked is not null and earlier = 0 then asked
                      else greatest(asked, t + backoff('60 seconds', '24 hours', earlier)) end;
        strikes := least(earlier, 30) + 1;
        perform block_until(host_id, until, reason, strikes, t), note_strike(t, h.name, until, reason, strikes);
    end if;
end $$;

-- Takes one strike from hosts that answered with a page after their block ended. Their next block is shorter. Hosts
-- that another transaction has locked are passed over: a later report can forgive them. This function updates several
-- hosts, so it must not wait for one.
create or replace function forgive_strike(t timestamptz, hosts bigint[]) returns void
language sql volatile as $$
-- plans: lookups; writes host; locks host (passing over locked ones)
    update host h set strikes = h.strikes - 1
    from (select host_id from host
          where host_id = any (hosts) and strikes > 0 and blocked_until <= t
          for no key update skip locked) w
    where h.host_id = w.host_id
$$;

-- Counts failed fetches of a host. Blocks the host if at least ten fetches failed, and these are at least half of its
-- fetches since the count began (failures_since). The count begins again after a block, or if less than half failed.
create or replace function count_failures(host_id bigint, more int, t timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups; writes host; locks host
declare
    h host;
begin
    select * into h from host where host.host_id = count_failures.host_id for update;
    h.failures := h.failures + more;
    if h.failures * 2 < h.handed_out - h.failures_since then
        h.failures := more;
        h.failures_since := h.handed_out - more;
    elsif h.failures >= 10 then
        perform strike_host(
            host_id, null, format('%s of its last %s fetches failed', h.failures, h.handed_out - h.failures_since), t);
        h.failures := 0;
        h.failures_since := h.handed_out;
    end if;
    update host set failures = h.failures, failures_since = h.failures_since
    where host.host_id = count_failures.host_id;
end $$;

-- The leased page of a host with one_at_a_time is back, so the host may give its next page. Only the current lease of
-- the page ends the wait. A report or a release with an older lease changes nothing here.
create or replace function end_wait(host_id bigint, lease_id bigint, t timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups; writes host; locks host
begin
    update host h set busy_until = null, busy_lease = null
    where h.host_id = end_wait.host_id and h.busy_lease = end_wait.lease_id;
    if found then
        perform renew_ready_at(host_id, t);
    end if;
end $$;

-- Moves the next slot of a host after a request that began after its start_by, or without a slot. Then the gap is
-- measured from the start of the request.
create or replace function push_slot(host_id bigint, started_at timestamptz, t timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups; writes host; locks host
begin
    update host h set last_start_by = started_at
    where h.host_id = push_slot.host_id and started_at > h.last_start_by;
    if found then
        perform renew_ready_at(host_id, t);
    end if;
end $$;

-- Stores the crawl delay of a host: the longest of the delays in the robots.txt of its sites and of the reported one,
-- at most a minute. So no robots.txt can stop the crawl of a host. A host that already has this delay is not changed.
create or replace function set_crawl_delay(host_id bigint, reported interval, t timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups; writes host; locks host
declare
    delay interval;
begin
    -- First only the lock: the next statement then sees the delay that another transaction stored for another site.
    perform from host h where h.host_id = set_crawl_delay.host_id for update;
    delay := (
        select least(greatest(reported, max(r.crawl_delay), '0'), '1 minute')
        from robots r where r.host_id = set_crawl_delay.host_id);
    update host h set crawl_delay = delay
    where h.host_id = set_crawl_delay.host_id and h.crawl_delay is distinct from delay;
    if found then
        perform renew_ready_at(host_id, t);
    end if;
end $$;
