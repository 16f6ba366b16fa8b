-- Explains the name of a host, and a URL that is not in the crawl.

-- Explains the name of a host. Also gives the reasons of explain_holds(), for example a block: they apply to all pages
-- of the host.
create or replace function explain_host(t timestamptz, name text, id bigint) returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    h host;
    s setting;
begin
    select * into h from host o where o.host_id = id;
    select * into s from setting;
    return query
    select 'now', 'is_host',
           format('This is a host%s, with %s.',
                  case when h.name <> explain_host.name then format(' (also known as %s)', h.name) end,
                  how_many(h.pages, null, 'page')),
           format('SELECT * FROM recrawl.host_status WHERE host = %L;', h.name),
           jsonb_build_object('name', explain_host.name, 'host', h.name, 'pages', h.pages)
    union all
    select 'also', e.code, e.says, e.fix, e.detail from explain_holds(t, h, s) e;
end $$;

-- How many pages a host has, with those in the inbox, and how many it may have; null = no limit. Pages are counted as
-- insert_pages() counts them for max_pages.
create or replace function room_on_host(name text, s setting, out pages bigint, out max_pages int)
language plpgsql stable as $$
-- plans: lookups
declare
    id bigint;
begin
    select n.host_id, coalesce(n.max_pages, s.max_pages_per_host) into id, max_pages
    from host_name n where n.name = room_on_host.name;
    if not found then
        pages := 0;
        max_pages := s.max_pages_per_host;
    elsif max_pages is not null then
        pages := coalesce((select h.pages from host h where h.host_id = id), 0)
                 + (select count(*) from on_their_way() w where w.host_id = id);
    end if;
end $$;

-- Explains a URL that is not in the crawl: whether add_pages would add it, and if not, why.
create or replace function explain_unknown(url text, host text, canonical text) returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    s       setting;
    kept_by text[];
    room    record;
begin
    select * into s from setting;
    kept_by := array(select e.pattern from exclusion e where canonical ~ e.pattern order by e.pattern);
    room := room_on_host(host, s);
    host := coalesce((select name_of_host(n.host_id) from host_name n where n.name = host), host);
    return query
    select 'now', c.code, c.says, c.fix,
           jsonb_build_object('url', canonical, 'host', host, 'patterns', kept_by, 'max_depth', s.max_depth,
                              'pages', room.pages, 'max_pages', room.max_pages)
    from (
        select 'excluded_url' as code,
               format('It is not in the crawl, and the excluded pattern %s keeps it out.',
                      kept_by[1]) as says,
               (select string_agg(format('SELECT recrawl.unexclude(%L);', k), ' ') from unnest(kept_by) as k) as fix
        where kept_by <> '{}'
        union all
        select 'being_added',
               'A reported page links to it, but another transaction that is still open is adding it too. Upkeep adds '
               'it when that transaction ends.',
               'SELECT pid, usename, state_change, query FROM pg_stat_activity WHERE state = ''idle in transaction'';'
        where exists (select from link_later l where l.tries > 0 and l.key = url_key(canonical))
           or exists (select from (select l.key from link_later l where l.tries = 0 order by l.at limit 1000) l
                      where l.key = url_key(canonical))
        union all
        select 'host_full',
               format('It is not in the crawl, and its host is full: %s has %s pages and may have %s.',
                      host, grouped(room.pages),
                      grouped(room.max_pages)),
               format('SELECT recrawl.set_host(%L, max_pages => %s);', host, least(room.pages + 1000, 2147483647))
        where room.pages + 1 > room.max_pages
        union all
        select 'unknown',
               'It is not in the crawl: it was not added, and no reported page links to it'
               || coalesce(' within ' || s.max_depth || ' links of the first pages (the setting max_depth)', '')
               || '.',
               format('SELECT * FROM recrawl.add_pages(ARRAY[%L]);', url)
    ) c
    limit 1;
end $$;
