-- Links and redirects of reported pages.

-- Finds or makes the pages that results link and redirect to. URLs that another transaction is taking in are set aside
-- in link_later. The lock_timeout is for intern_where_free().
create or replace function intern_links(t timestamptz, results result[]) returns found_links[]
language plpgsql volatile set lock_timeout = '300ms' as $$
-- plans: hashes; writes link_later; locks exclusion (shared), new keys
#variable_conflict use_column
declare
    any_locked constant boolean := exists (select from link_later where tries > 0);
    reported reported_link[];
    pages    bigint[];
    led_to   found_links[];
begin
    -- If the target of a link is a new page, it gets the value of the link.
    select array_agg((
        (l.url, l.value, null, null, l.meta, null, l.depth, l.moved_from_host)::given_url, r.ord, l.is_redirect,
        r.page_id,
        any_locked and exists (select from link_later k where k.tries > 0 and k.key = url_key(canonical_of(l.url)))
    )::reported_link)
    into reported
    from unnest(results) r
    cross join graph_state g
    -- The result of an unknown page brings no links.
    cross join lateral (
        select p.host_id, p.depth, coalesce((r.extras).meta, p.meta) as meta,
               least(plain_value(p.value, p.boost, p.pinned_value), most_amount()) as value
        from page p where p.page_id = r.page_id offset 0
    ) p
    cross join lateral (
        select u.url, false as is_redirect, least(p.depth + 1, 32767) as depth,
               case when p.value > 0 then greatest(g.first_share * p.value, least_amount()) else p.value end as value,
               null as moved_from_host, null as meta
        from unnest((r.extras).links[:most_links()]) as u (url)
        union all
        -- A redirect is not a link: its target gets the depth, the value and the meta of the page itself.
        select (r.extras).redirect_to, true, p.depth, p.value, p.host_id, p.meta
        where (r.extras).redirect_to is not null
    ) l
    where r.problem is null;

    with
    -- The pages of all URLs, except those that were set aside before and are still locked. For those, null is passed,
    -- and there is no page. A URL that another transaction is taking in now has code `waiting`.
    interned as materialized (
        select i.ord, i.page_id, i.code
        from intern_pages(
            t, array(select case when not l.was_locked then l.given end from unnest(reported) l), true) i
    ),
    -- Set aside: URLs that are still locked, and URLs with the code `waiting`.
    set_aside as (
        insert into link_later (page_id, key, url, worth, depth)
        select case when not l.is_redirect then l.source end, url_key(canonical_of((l.given).url)), (l.given).url,
               (l.given).value, (l.given).depth
        from unnest(reported) with ordinality as l (given, ord, is_redirect, source, was_locked, place)
        where l.was_locked or (l.place in (select i.ord from interned i where i.code = 'waiting')) is true
    )
    select array_agg(i.page_id order by i.ord) into pages from interned i;
    select array_agg(l::found_links) into led_to
    from (
        select r.ord, r.page_id,
               coalesce(string_agg(distinct int8send(o.page_id), ''::bytea)
                            filter (where not o.is_redirect and o.page_id <> r.page_id), '') as targets,
               min(o.page_id) filter (where o.is_redirect) as moved_to
        from unnest(results) r
        left join unnest(reported, pages) as o (given, ord, is_redirect, source, was_locked, page_id) on o.ord = r.ord
        where (r.extras).links is not null or (r.extras).redirect_to is not null
        group by r.ord, r.page_id
    ) l;
    return led_to;
end $$;

-- Stores links that were set aside and whose URLs have pages now. Returns how many are done. A row of link that a
-- report has locked is skipped, and its links stay set aside.
create or replace function settle_links(late set_aside_link[]) returns int
language sql volatile as $$
-- plans: hashes; writes link_later, link; locks link_later, link by id
    with
    -- The rows of link that these links belong to, except those that are deleted or locked.
    linking as materialized (
        select k.page_id, k.targets from link k
        where k.page_id in (select l.source from unnest(late) l where l.page_id is not null)
        order by k.page_id
        for update skip locked
    ),
    -- The links are added to the targets of their pages.
    linked as (
        update link k set
            targets = (select coalesce(string_agg(distinct int8send(n.target), ''::bytea), '')
                       from (select unpacked(g.targets) as target
                             union all
                             select l.page_id from unnest(late) l
                             where l.source = g.page_id and l.page_id <> g.page_id) n)
        from linking g
        where k.page_id = g.page_id
    ),
    -- Links that are done leave the table. A link stays if the row of its linking page is locked.
    settled as (
        delete from link_later k using unnest(late) l
        where k.ctid = l.tid and l.code <> 'waiting'
          and (l.page_id is null or l.source is null
               or (l.source in (select g.page_id from linking g)) is true
               or not exists (select from link o where o.page_id = l.source))
        returning 1
    ),
    -- URLs that are still held come after the others next time.
    tried as (
        update link_later k set tries = k.tries + 1 from unnest(late) l where k.ctid = l.tid and l.is_held
    )
    select count(*)::int from settled
$$;

-- Takes in links that were set aside. Returns how many are done. All URLs are taken in at once. If another transaction
-- still holds one of them, up to 50 URLs are tried one by one, to find the held ones. The function waits at most 5 ms
-- for each lock.
create or replace function take_links_in(t timestamptz, most int) returns int
language plpgsql volatile set lock_timeout = '5ms' as $$
-- plans: hashes; locks link_later, exclusion (shared), new keys, link by id
declare
    given   given_url[];
    tids    tid[];
    sources bigint[];
    pages   bigint[];
    codes   text[];
    one     record;
    answer  recrawl.added_page;
    held    text[] := '{}';            -- URLs that another transaction still holds
begin
    select array_agg((l.url, l.worth, null, null, null, null, l.depth, null)::given_url), array_agg(l.tid),
           array_agg(l.page_id)
    into given, tids, sources
    from (select l.ctid as tid, l.* from link_later l
          where l.tries = (select min(tries) from link_later)
          order by l.at limit most
          for update skip locked) l;
    if tids is null then
        return 0;
    end if;
    select array_agg(i.page_id order by i.ord), array_agg(i.code order by i.ord) into pages, codes
    from intern_pages(t, given, true) i;
    for one in
        select distinct on (w.url) w.url, w.place
        from unnest(given, codes) with ordinality
             as w (url, value, rate, due, meta, asked_as, depth, moved_from_host, code, place)
        where w.code = 'waiting'
        limit 50
    loop
        select * into answer from intern_pages(t, given[one.place : one.place], true);
        pages[one.place] := answer.page_id;
        codes[one.place] := answer.code;
        if answer.code = 'waiting' then
            held := held || one.url;
        end if;
    end loop;
    return settle_links(array(
        select (l.tid, l.source, l.page_id, l.code, (l.url in (select unnest(held))) is true)::set_aside_link
        from unnest(tids, sources, pages, codes, given)
             as l (tid, source, page_id, code, url, value, rate, due, meta, asked_as, depth, moved_from_host)));
end $$;

-- The live page that each permanent redirect finally leads to, by ord of the result; null if there is no such page, or
-- if it is not locked. intern_links() has followed the redirects that were known before this report. So only redirects
-- of this report are followed here. A redirect that would close a circle is ignored, because otherwise all pages of the
-- circle would be lost. The caller has locked sources and targets, so that the answer is still true when it is written.
create or replace function resolved_redirects(led_to found_links[], locked bigint[]) returns bigint[]
language plpgsql stable as $$
-- plans: lookups
declare
    redirects bigint[];
    moving    bigint[] := '{}';        -- pages of this report that move, and their targets
    moving_to bigint[] := '{}';
    redirect  record;
    target    bigint;
begin
    for redirect in
        select f.ord, f.page_id, f.moved_to from unnest(led_to) f where f.moved_to is not null order by f.ord
    loop
        target := redirect.moved_to;
        -- This ends: a page gets a target only if the target is neither the page itself nor a page that moves.
        while target = any (moving) loop
            target := moving_to[array_position(moving, target)];
        end loop;
        if target <> redirect.page_id and target = any (locked)
           and exists (select from page p where p.page_id = target and p.state = 'live') then
            redirects[redirect.ord] := target;
            moving := moving || redirect.page_id;
            moving_to := moving_to || target;
        end if;
    end loop;
    return redirects;
end $$;

-- Replaces the links of pages with the links of their results.
create or replace function replace_links(led_to found_links[], ords int[]) returns void
language plpgsql volatile as $$
-- plans: hashes; writes link; locks link by id
begin
    insert into link (page_id, targets)
    select f.page_id, f.targets
    from unnest(led_to) f
    where f.ord in (select unnest(ords))
    order by f.page_id
    on conflict (page_id) do update set targets = excluded.targets where link.targets <> excluded.targets;
end $$;
