-- Makes the pages of URLs that have no row in page yet. No host is locked: new pages reach the queue through the inbox.
-- Rows are inserted in the order of their unique keys, so that overlapping batches can wait for each other, but never
-- in a circle.

-- A name that is requested as another host gets its row in host_name first, like all names, and is pointed to the other
-- host in a second statement: so all names are inserted in one order. A name that already has a row keeps its host.
-- A name that other names are requested as keeps a host of its own.
create or replace function recrawl_internal.intern_hosts(names text[], hosts text[]) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes host_name, host; locks new keys, host_name
declare
    made text[];                       -- new names that are requested as another host
begin
    with
    -- Names without a row, each with the host that it is requested as.
    given as materialized (
        select distinct on (n.name) n.name, n.asked_as
        from unnest(names || hosts, hosts) as n (name, asked_as)
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

    -- A new statement has a new snapshot: another transaction may have made the other host.
    if made is not null then
        update host_name n set host_id = other.host_id, max_pages = other.max_pages
        from unnest(names, hosts) as g (name, asked_as)
        cross join lateral (select * from host_name h where h.name = g.asked_as offset 0) other
        where n.name = g.name and (g.name in (select unnest(made))) is true;
    end if;
end $$;
comment on function recrawl_internal.intern_hosts(text[], text[]) is
    'Makes sure that each name has a row in host_name and a host: its own, or the host that it is requested as.';

-- Pages in the inbox count for max_pages too. Only the latest 10,000 entries are read: with more, a host can get more
-- pages than max_pages.
create or replace function recrawl_internal.on_their_way() returns table (host_id bigint)
language sql stable
begin atomic
    select i.host_id
    from (select * from recrawl_internal.inbox order by at desc limit 10000) i
    where i.old_due is null and i.old_rank is null;
end;
comment on function recrawl_internal.on_their_way() is
    'The hosts of new pages that are still in the inbox: one row for each page, from the latest 10,000 entries.';

-- The items have one row for each page, in order of keys.
create or replace function recrawl_internal.intern_unknown(
    t timestamptz, items recrawl_internal.intern_item[], are_links boolean,
    out place int, out page_id bigint, out reason text
) returns setof record
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes page, inbox; locks exclusion (shared), new keys
#variable_conflict use_column
declare
    s       setting;
    reasons text[];                    -- one for each item: why it is kept out
begin
    perform skip_lost_ids();                   -- the page ids are drawn below
    select * into s from setting;
    lock table exclusion in row share mode;    -- see exclude()
    reasons := array(
        select case
            when i.depth > s.max_depth then
                format('%s links from the start, the setting max_depth is %s', i.depth, s.max_depth)
            else (select format('matches the excluded pattern %s', e.pattern)
                  from exclusion e where i.canonical ~ e.pattern limit 1)
        end
        from unnest(items) as i
        order by i.place);
    perform intern_hosts(array_agg(i.host order by i.ordinality),
                         case when count(i.asked_as) > 0 then array_agg(i.asked_as order by i.ordinality) end)
    from unnest(items) with ordinality as i
    where reasons[i.ordinality::int] is null;

    return query
    with
    -- The items that neither max_depth nor a pattern keeps out, with their hosts.
    item as (
        select i.*, h.host_id, coalesce(h.max_pages, s.max_pages) as max_pages,
               row_number() over (partition by h.host_id order by i.ord) as nth_of_host
        from unnest(items) with ordinality as i
        cross join lateral (select n.host_id, n.max_pages from host_name n where n.name = i.host offset 0) h
        where reasons[i.ordinality::int] is null
    ),
    -- The number of pages in the inbox for each host.
    waiting as (
        select jsonb_object_agg(host_id, pages) as pages_of_host
        from (select host_id, count(*) as pages from on_their_way() group by host_id) w
    ),
    -- is_welcome: the host may have one more page.
    judged as materialized (
        select i.*,
               max_pages is null
               or nth_of_host
                  + (select h.pages from host h where h.host_id = i.host_id)
                  + coalesce(((select pages_of_host from waiting) ->> i.host_id::text)::int, 0)
                  <= max_pages as is_welcome
        from item i
        order by i.ord
    ),
    -- Page ids are drawn in the order given, because new pages of the same value are fetched in order of page_id. The
    -- rows are inserted in order of keys.
    numbered as materialized (
        select j.*, b.boost, nextval('page_id') as page_id
        from judged j left join lateral boost_of(j.canonical) b on true
        where is_welcome
    ),
    -- The pages that no other transaction made first.
    inserted as (
        insert into page (page_id, key, host_id, url, value, pinned_value, boost, pinned_rate, due_at, due_is, meta,
                          depth, found_at)
        select page_id, key, host_id, url, boosted(coalesce(value, 1), boost), case when not are_links then value end,
               boost, rate,
               case when due = 'infinity' then never(page_id) else due end, case when due = 'infinity' then 'done' end,
               meta, coalesce(depth, 0), t
        from numbered
        order by key
        on conflict (key) do nothing
        returning page_id, host_id, value, due_at
    ),
    -- The inbox brings them into the queue.
    told as (
        insert into inbox (host_id, page_id, new_due, new_rank)
        select host_id, page_id, due_at, case when due_at is null then -value end from inserted
    )
    select n.place, case when (n.page_id in (select i.page_id from inserted i)) is true then n.page_id end, null
    from numbered n
    union all
    select j.place, null, format('the host %s has as many pages as it may have', name_of_host(j.host_id))
    from judged j
    where not j.is_welcome
    union all
    select i.place, null, reasons[i.ordinality::int]
    from unnest(items) with ordinality as i
    where reasons[i.ordinality::int] is not null;
end $$;
comment on function recrawl_internal.intern_unknown(timestamptz, recrawl_internal.intern_item[], boolean) is
    'Makes pages, unless something keeps them out. Returns one row for each item: its page, or the reason why there '
    'is no page, or neither if another transaction made the page first.';

-- Two transactions that take in the same URL, or the first URL of the same host, wait for each other. add_pages waits
-- until the other transaction ends. For links, the caller sets a short lock_timeout. They are taken in in a
-- subtransaction, so that the report goes on after the timeout.
create or replace function recrawl_internal.intern_where_free(
    t timestamptz, items recrawl_internal.intern_item[], are_links boolean,
    out place int, out page_id bigint, out reason text
) returns setof record
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
begin
    if are_links then
        begin
            return query select * from intern_unknown(t, items, true);
        exception when lock_not_available then
            null;
        end;
    else
        return query select * from intern_unknown(t, items, false);
    end if;
end $$;
comment on function recrawl_internal.intern_where_free(timestamptz, recrawl_internal.intern_item[], boolean) is
    'Calls intern_unknown. For links it returns no rows if another transaction holds one of them for too long.';
