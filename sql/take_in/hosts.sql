-- Makes hosts: for new pages, and for set_host, block_host, set_robots and take_slot.

-- Makes sure that each name has a row in host_name and a host. hosts: for each name the other name whose host it shares
-- (add_pages(host => …)); null = it has a host of its own. The first statement inserts all new names, sorted. The
-- second one points the names that share to their hosts. A name that already has a row keeps its host. A new name in
-- `hosts` gets a host of its own, even if it also asks for another one.
create or replace function intern_hosts(names text[], hosts text[]) returns void
language plpgsql volatile as $$
-- plans: lookups; writes host_name, host; locks new keys, host_name
declare
    made text[];                       -- new names that share the host of another name
begin
    with
    -- Names without a row, each with the name whose host it shares.
    given as materialized (
        select distinct on (n.name) n.name, n.asked_as
        from (select name, asked_as from unnest(names, hosts) as u (name, asked_as)
              union all
              select name, null from unnest(hosts) as u (name)) n
        where n.name is not null and not exists (select from host_name h where h.name = n.name)
        order by n.name, n.asked_as
    ),
    -- is_asked_as: the name gets no host of its own.
    unknown as materialized (
        select g.name, nextval('host_id') as host_id,
               g.asked_as is not null and (g.name in (select unnest(hosts))) is not true as is_asked_as
        from given g
    ),
    -- The names that no other transaction made first.
    named as (
        insert into host_name (name, host_id) select name, host_id from unknown order by name
        on conflict (name) do nothing
        returning name, host_id
    ),
    -- The names that are a host of their own.
    of_their_own as (
        insert into host (host_id, name)
        select host_id, name from named
        where (name in (select u.name from unknown u where u.is_asked_as)) is not true
    )
    select array_agg(n.name) into made
    from named n
    where (n.name in (select u.name from unknown u where u.is_asked_as)) is true;

    -- A new statement has a new snapshot: another transaction may have made the other host. The lock is for set_host,
    -- which gives max_pages to all names of a host: set_host waits until this transaction ends, and then sees these
    -- names.
    if made is not null then
        perform from host_name n where n.name in (select unnest(hosts)) order by n.name for share;
        update host_name n set host_id = other.host_id, max_pages = other.max_pages
        from unnest(names, hosts) as g (name, asked_as)
        join host_name other on other.name = g.asked_as
        where n.name = g.name and (g.name in (select unnest(made))) is true;
    end if;
end $$;

-- The id of a host. Makes the host if it is unknown.
create or replace function host_named(verb text, host text) returns bigint
language plpgsql volatile as $$
-- plans: lookups
declare
    named constant text := host_name_of(verb, host);
begin
    perform intern_hosts(array[named], null);
    return (select n.host_id from host_name n where n.name = named);
end $$;

-- The id of a host. Makes the host if it is unknown. Raises if the setting max_unknown_hosts allows no more unknown
-- hosts in this minute. This setting is the only limit on hosts without pages. Refused calls count too. If two calls
-- come while the minute changes, one of them may not count.
create or replace function host_for_crawler(t timestamptz, verb text, host text) returns bigint
language plpgsql volatile as $$
-- plans: lookups; locks new keys
declare
    most   constant int := (select max_unknown_hosts from setting);
    -- new_host_count is 10,000,000 × the minute + the calls of this minute. Each minute begins with a new `before`.
    before constant bigint := 10000000 * floor(extract(epoch from t) / 60)::bigint;
    id     bigint := host_id_of(verb, host);
begin
    if id is null then
        if (select c.last_value < before or c.last_value > before + 9000000 from new_host_count c) then
            perform setval('new_host_count', before);
        end if;
        if nextval('new_host_count') > before + most then
            perform refuse(format('%s: crawlers made %s hosts known in this minute, as many as the setting '
                                  'max_unknown_hosts allows', verb, most));
        end if;
        id := host_named(verb, host);
    end if;
    return id;
end $$;
