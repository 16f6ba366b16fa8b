-- Makes the pages of URLs that have no row in page yet:
--
--   1. Keep out URLs that are too deep or match an excluded pattern.
--   2. Make the hosts (hosts.sql).
--   3. Make the pages, if their hosts may have more. They reach the queue through the inbox, so no host is locked.
--
-- Rows are inserted in the order of their unique keys, so that overlapping batches can wait for each other, but never
-- in a circle.

-- The hosts of pages that enter the queue by the inbox: one row for each page. Pages in the inbox count for max_pages
-- too. Only the latest 10,000 entries are read: with more, a host can get more pages than max_pages.
create or replace function on_their_way() returns table (host_id bigint)
language sql stable
begin atomic
    select i.host_id
    from (select * from inbox
          where at >= from_micros((select last_value from inbox_horizon))
          order by at desc limit 10000) i
    where i.old_due is null and i.old_rank is null;
end;

-- Makes the pages whose hosts may have more. Their hosts have rows. Returns one element for each URL.
create or replace function insert_pages(t timestamptz, urls parsed_url[], are_links boolean) returns made_page[]
language plpgsql volatile as $$
-- plans: lookups; writes page, inbox; locks new keys
declare
    made made_page[];
begin
    with
    -- The URLs with their hosts, and the number of pages that each host may have. Links and targets of redirects are
    -- numbered separately.
    url as (
        select u.*, h.host_id, coalesce(h.max_pages, s.max_pages_per_host) as max_pages,
               row_number() over (
                   partition by h.host_id, (u.given).moved_from_host is not distinct from h.host_id order by u.ord
               ) as nth_of_host
        from unnest(urls) as u
        cross join setting s
        cross join lateral (select n.host_id, n.max_pages from host_name n where n.name = u.host offset 0) h
    ),
    -- The number of pages in the inbox for each host.
    waiting as (
        select jsonb_object_agg(host_id, pages) as pages_of_host
        from (select host_id, count(*) as pages from on_their_way() group by host_id) w
    ),
    -- has_room: the host may have one more page. If the URL is the target of a permanent redirect from the same host,
    -- the host may have twice as many pages: the old ones count in host.pages until the inbox is drained.
    judged as materialized (
        select u.*,
               u.max_pages is null
               or u.nth_of_host
                  + (select h.pages from host h where h.host_id = u.host_id)
                  + coalesce(((select pages_of_host from waiting) ->> u.host_id::text)::int, 0)
                  <= u.max_pages * case when (u.given).moved_from_host = u.host_id then 2 else 1 end as has_room
        from url u
        order by u.ord
    ),
    -- Page ids are drawn in the order given, because new pages of the same value are fetched in order of page_id. The
    -- rows are inserted in order of keys.
    numbered as materialized (
        select j.*, b.boost, nextval('page_id') as page_id
        from judged j left join lateral boost_of(j.canonical) b on true
        where j.has_room
    ),
    -- The pages that no other transaction made first.
    inserted as (
        insert into page (page_id, key, host_id, url, value, pinned_value, boost, pinned_rate, due_at, due_is, meta,
                          depth, added_at)
        select n.page_id, n.key, n.host_id, n.url, boosted(coalesce((n.given).value, 1)::real, n.boost),
               case when not are_links then (n.given).value end, n.boost, (n.given).rate,
               case when (n.given).due = 'infinity' then never(n.page_id) else (n.given).due end,
               case when (n.given).due = 'infinity' then 'done' end,
               (n.given).meta, coalesce((n.given).depth, 0), t
        from numbered n
        order by n.key
        on conflict (key) do nothing
        returning page_id, host_id
    ),
    entered as (insert into inbox (host_id, page_id) select host_id, page_id from inserted)
    select array_agg(m::made_page) into made
    from (
        select n.place, n.key, case when (n.page_id in (select i.page_id from inserted i)) is true then n.page_id end,
               null
        from numbered n
        union all
        select j.place, j.key, null, format('the host %s has as many pages as it may have', name_of_host(j.host_id))
        from judged j
        where not j.has_room
    ) m;
    return made;
end $$;

-- Makes pages, unless something keeps them out. The URLs name different pages. Returns one element for each URL.
create or replace function intern_unknown(t timestamptz, urls parsed_url[], are_links boolean) returns made_page[]
language plpgsql volatile as $$
-- plans: lookups; locks exclusion (shared), new keys
declare
    refused made_page[];                       -- the URLs that max_depth or an excluded pattern keeps out
begin
    perform skip_lost_ids();                   -- before page ids are drawn
    lock table exclusion in row share mode;    -- see exclude()
    refused := array(
        select (u.place, u.key, null,
                case when (u.given).depth > s.max_depth then
                         format('%s links from the start, the setting max_depth is %s', (u.given).depth, s.max_depth)
                     else format('matches the excluded pattern %s', e.pattern) end)::made_page
        from setting s
        cross join unnest(urls) as u
        left join lateral (select e.pattern from exclusion e where u.canonical ~ e.pattern limit 1) e on true
        where (u.given).depth > s.max_depth or e.pattern is not null);
    if cardinality(refused) > 0 then
        urls := array(
            select u from unnest(urls) as u
            where (u.place in (select r.place from unnest(refused) as r)) is not true order by u.place);
    end if;
    perform intern_hosts(array_agg(u.host order by u.place),
                         case when count(u.asked_as) > 0 then array_agg(u.asked_as order by u.place) end)
    from unnest(urls) as u;
    return refused || insert_pages(t, urls, are_links);
end $$;

-- Makes pages, unless something keeps them out or another transaction made them first. If two transactions take in the
-- same URL, or the first URL of the same host, the second one waits for the first. add_pages waits until the first one
-- ends. For links, the caller sets a short lock_timeout, and a subtransaction makes the pages. After the timeout this
-- returns no rows, and the report goes on.
create or replace function intern_where_free(t timestamptz, urls parsed_url[], are_links boolean)
returns setof found_page
language plpgsql volatile as $$
-- plans: lookups
declare
    made made_page[];
begin
    if are_links then
        begin
            made := intern_unknown(t, urls, true);
        exception when lock_not_available then
            return;
        end;
    else
        made := intern_unknown(t, urls, false);
    end if;
    -- A new statement has a new snapshot: it sees the pages that other transactions made first.
    return query
    select m.place, coalesce(m.page_id, p.page_id), m.page_id is not null, m.reason
    from unnest(made) m
    left join lateral (
        select p.page_id from page p where p.key = m.key and m.page_id is null and m.reason is null offset 0
    ) p on true;
end $$;
