-- set_host: limits of one host. It may be called before the first page of the host is known.

-- The values that set_host has set for a host.
create or replace function said_of_host(host_id bigint) returns jsonb
language sql volatile as $$
-- plans: lookups
    select jsonb_build_object('gap', justify_hours(h.gap), 'max_pages', n.max_pages, 'one_at_a_time', h.one_at_a_time)
    from host h join host_name n on n.name = h.name
    where h.host_id = said_of_host.host_id
$$;

create or replace function set_host_at(
    t timestamptz, host text, gap interval, max_pages int, one_at_a_time boolean, reset text[]
) returns void
language plpgsql volatile as $$
-- plans: lookups; writes host, host_name; locks new keys, host, host_name
declare
    id     bigint;
    before jsonb;
begin
    perform refuse(format('set_host: gap must lie between 1 millisecond and 30 days, got %s', gap))
    where in_seconds(gap) not between interval '1 millisecond' and interval '30 days';
    perform refuse(format('set_host: max_pages must not be negative, got %s', max_pages)) where max_pages < 0;
    perform refuse(format('set_host: reset may hold gap, max_pages and one_at_a_time, got %s', coalesce(r, 'null')))
    from unnest(reset) as r where r is null or r not in ('gap', 'max_pages', 'one_at_a_time');

    reset := coalesce(reset, '{}');
    id := host_named('set_host', set_host_at.host);
    perform from host h where h.host_id = id for update;
    before := said_of_host(id);
    update host h set
        gap = g.gap,
        one_at_a_time = g.one_at_a_time,
        busy_until = case when g.one_at_a_time then h.busy_until end,
        busy_lease = case when g.one_at_a_time then h.busy_lease end
    from (select coalesce(in_seconds(set_host_at.gap), case when 'gap' = any (reset) then null else o.gap end) as gap,
                 coalesce(set_host_at.one_at_a_time, 'one_at_a_time' <> all (reset) and o.one_at_a_time)
                     as one_at_a_time
          from host o where o.host_id = id) g
    where h.host_id = id;
    -- First only the locks: the next statement then sees all names of the host.
    perform from host_name n where n.host_id = id order by n.name for update;
    update host_name n set
        max_pages = coalesce(set_host_at.max_pages, case when 'max_pages' = any (reset) then null else n.max_pages end)
    where n.host_id = id;
    perform renew_ready_at(id, t), ask_for_allocation(t);
    perform note_event(t, 'host', name_of_host(id), c.changes)
    from (select string_agg(format('%s: %s → %s', key, coalesce(before ->> key, 'none'), coalesce(value, 'none')), ', '
                            order by key) as changes
          from jsonb_each_text(said_of_host(id)) where value is distinct from before ->> key) c
    where c.changes is not null;
end $$;

create or replace function recrawl.set_host(
    host text, gap interval default null, max_pages int default null, one_at_a_time boolean default null,
    reset text[] default '{}'
) returns void
language sql volatile security definer as $$
    select check_isolation('set_host');
    select set_host_at(clock_timestamp(), host, gap, max_pages, one_at_a_time, reset)
$$;
comment on function recrawl.set_host is
'Sets the limits of one host. An argument that is null changes nothing.

* host: its name or address, without port. The host need not have pages yet.
* gap: the least time between two requests, from 1 millisecond to 30 days. Without it the gap is the greater of the
  setting default_gap and the crawl delay of robots.txt.
* max_pages: the host takes in no more pages than this. Pages that are being added at the moment may exceed it.
* one_at_a_time: true means that recrawl hands out the next page only after the last one was reported or released, or
  its lease ended. Pages that are leased already when you set it do not count.
* reset: the names of limits that go back to the settings, for example ''{gap}''.';
grant execute on function recrawl.set_host to recrawl_operator;
