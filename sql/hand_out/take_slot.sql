-- A slot without a page: for a request to a host that is none, such as a robots.txt that another one redirects to.

create or replace function recrawl_internal.take_slot_at(
    t timestamptz, host text, ahead interval, notice interval default '0'
) returns setof recrawl.slot
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes host; locks new keys, host
declare
    s     setting;
    h     host;
    id    bigint;
    given timestamptz;
    ends  timestamptz;
begin
    perform check_isolation('take_slot');
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
    id := host_named('take_slot', take_slot_at.host);
    select * into h from host where host_id = id for update;
    given := greatest(next_slot(h, s), t + in_seconds(notice));
    ends := given + (slot_every(h, s) - host_gap(h.gap, h.crawl_delay, s.default_gap));
    if h.blocked_until > t or given > t + in_seconds(ahead) then
        return;
    end if;
    update host set last_start_by = ends where host_id = id;
    perform wake_host(id, t);
    if s.budget is not null then
        perform count_fetches(1, 0);
    end if;
    return query select given, ends, given - t;
end $$;
comment on function recrawl_internal.take_slot_at(timestamptz, text, interval, interval) is
    'take_slot at a given time.';

create or replace function recrawl.take_slot(
    host text, ahead interval default '10 seconds', notice interval default '0'
) returns setof recrawl.slot
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query select * from take_slot_at(clock_timestamp(), host, ahead, notice);
end $$;
comment on function recrawl.take_slot(text, interval, interval) is
    'The next slot of a host, for a request that is no page, such as a robots.txt that another host''s redirects to. '
    'It is yours, and nobody else''s. No row: the host is held, the crawl is paused, or no slot is free within the '
    'time to look ahead. It is no sooner than notice from now, as with next_pages.';
grant execute on function recrawl.take_slot to recrawl_crawler;
