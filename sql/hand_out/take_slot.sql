-- take_slot: a slot without a page. A crawler needs it for a request that fetches no page, for example if the
-- robots.txt of one host redirects to another host.

create or replace function take_slot_at(t timestamptz, host text, ahead interval, notice interval default '0')
returns setof recrawl.slot
language plpgsql volatile as $$
-- plans: lookups; writes host; locks new keys, host
declare
    s     setting;
    h     host;
    id    bigint;
    slot  timestamptz;
    ends  timestamptz;
begin
    select * into s from setting;
    if ahead is null or in_seconds(ahead) not between interval '0' and s.max_ahead then
        perform refuse(format('take_slot: ahead must lie between 0 and the setting max_ahead (%s), got %s',
                              s.max_ahead, coalesce(ahead::text, 'null')));
    elsif notice is null or in_seconds(notice) not between interval '0' and in_seconds(ahead) then
        perform refuse(format('take_slot: notice must lie between 0 and ahead, got %s',
                              coalesce(notice::text, 'null')));
    end if;
    if s.paused then
        return;
    end if;
    id := host_for_crawler(t, 'take_slot', take_slot_at.host);
    select * into h from host where host_id = id for update;
    slot := greatest(next_slot(h, s), t + in_seconds(notice));
    ends := slot + start_window(gap_of(h, s), s.window_share);
    if h.blocked_until > t or slot > t + in_seconds(ahead) then
        return;
    end if;
    update host set last_start_by = ends where host_id = id;
    perform renew_ready_at(id, t);
    if s.budget is not null then
        perform count_fetches(1, 0);
    end if;
    return query select slot, ends, slot - t;
end $$;

create or replace function recrawl.take_slot(
    host text, ahead interval default '10 seconds', notice interval default '0'
) returns setof recrawl.slot
language plpgsql volatile security definer as $$
-- plans: lookups; locks host
begin
    perform check_isolation('take_slot');
    -- Another transaction may have locked the host for seconds. The time is read after this wait, so that the slot is
    -- not past.
    perform from host h where h.host_id = host_id_of('take_slot', take_slot.host) for update;
    return query select * from take_slot_at(clock_timestamp(), host, ahead, notice);
end $$;
comment on function recrawl.take_slot is
'Gives you a moment at which you may send one request to a host. Use it for a request whose URL is no page of the
crawl, for example a robots.txt on another host. No other crawler gets this moment.

* host: its name or address, without port.
* ahead: how far to look ahead, at most the setting max_ahead.
* notice: how long you need until you can send the request, at most ahead. fetch_at is never earlier than now plus this
  time.

If the call returns no row, the host is blocked, the crawl is paused, or the host has no free moment within ahead.';
grant execute on function recrawl.take_slot to recrawl_crawler;
