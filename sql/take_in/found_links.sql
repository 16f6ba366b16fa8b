-- Links and redirects of reported pages.

-- Finds or makes the pages that results link and redirect to. If another transaction is taking in one of the new URLs,
-- this waits at most .3 s for it. If that is not enough, all new URLs are set aside in link_later: upkeep makes their
-- pages later, and the next report of the linking page stores the links. A URL that was still held when upkeep tried it
-- counts as no link, so that no report waits for it again. The lock_timeout is for intern_where_free().
create or replace function intern_links(t timestamptz, results result[]) returns found_links[]
language plpgsql volatile set lock_timeout = '300ms' as $$
-- plans: hashes; writes link_later; locks exclusion (shared), new keys
declare
    any_held constant boolean := exists (select from link_later where tries > 0);
    reported reported_link[];
    pages    bigint[];                 -- the page of each reported link
    codes    text[];                   -- of each reported link; waiting = another transaction takes the URL in now
begin
    -- If the target of a link is a new page, it gets the value of the link.
    reported := array(
        select ((l.url, l.value, null, null, l.meta, null, l.depth, l.moved_from_host)::given_url,
                r.ord, l.is_redirect)::reported_link
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
                   case when p.value > 0 then greatest(g.first_share * p.value, least_amount()) else p.value end
                       as value,
                   null as moved_from_host, null as meta
            from unnest((r.extras).links[:most_links()]) as u (url)
            union all
            -- A redirect is not a link: its target gets the depth, the value and the meta of the page itself.
            select (r.extras).redirect_to, true, p.depth, p.value, p.host_id, p.meta
            where (r.extras).redirect_to is not null
        ) l
        where r.problem is null
          and not (any_held and exists (
              select from link_later k where k.tries > 0 and k.key = url_key(canonical_of(l.url)))));
    select array_agg(i.page_id order by i.ord), array_agg(i.code order by i.ord) into pages, codes
    from intern_pages(t, array(select l.given from unnest(reported) l), true) i;
    insert into link_later (key, url, worth, depth)
    select distinct on (u.key) u.key, (u.given).url, (u.given).value, (u.given).depth
    from (select url_key(canonical_of((l.given).url)) as key, l.given, l.is_redirect, l.place
          from unnest(reported, codes) with ordinality as l (given, ord, is_redirect, code, place)
          where l.code = 'waiting') u
    order by u.key, not u.is_redirect, u.place;
    return array(
        select (r.ord, r.page_id,
                coalesce(string_agg(distinct int8send(o.page_id), ''::bytea)
                             filter (where not o.is_redirect and o.page_id <> r.page_id), ''),
                min(o.page_id) filter (where o.is_redirect))::found_links
        from unnest(results) r
        left join unnest(reported, pages) as o (given, ord, is_redirect, page_id) on o.ord = r.ord
        where (r.extras).links is not null or (r.extras).redirect_to is not null
        group by r.ord, r.page_id);
end $$;

-- Takes in at most 50 URLs that were set aside. It takes them one by one, because another transaction may still hold
-- some of them. Held URLs come after the others next time. Returns the number of URLs that were not held. It waits at
-- most 5 ms for each lock. So two transactions never wait for each other here, although the keys are locked in any
-- order.
create or replace function add_set_aside_urls(t timestamptz) returns int
language plpgsql volatile set lock_timeout = '5ms' as $$
-- plans: lookups; writes link_later; locks link_later, exclusion (shared), new keys
declare
    link record;
    held uuid[] := '{}';               -- keys of URLs that another transaction holds
    done int := 0;
begin
    for link in
        select l.ctid as tid, l.key, (l.url, l.worth, null, null, null, null, l.depth, null)::given_url as given
        from link_later l order by l.tries, l.at limit 50
        for update skip locked
    loop
        if link.key <> all (held)
           and (select i.code from intern_pages(t, array[link.given], true) i) = 'waiting' then
            held := held || link.key;
        end if;
        if link.key = any (held) then
            update link_later l set tries = l.tries + 1 where l.ctid = link.tid;
        else
            delete from link_later l where l.ctid = link.tid;
            done := done + 1;
        end if;
    end loop;
    return done;
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
