-- Where reported pages link and redirect to.

create or replace function recrawl_internal.intern_links(t timestamptz, results recrawl_internal.result[])
returns recrawl_internal.found_links[]
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: hashes
#variable_conflict use_column
declare
    urls    text[];
    ords    int[];                     -- whose link; negative: whose redirect
    sources bigint[];
    depths  int[];
    worths  float8[];                  -- what a new page starts with
    pages   bigint[];
    led_to  found_links[];
begin
    select array_agg(l.url), array_agg(l.ord), array_agg(r.page_id), array_agg(l.depth), array_agg(l.worth)
    into urls, ords, sources, depths, worths
    from unnest(results) r
    cross join graph_state g
    left join lateral (
        select p.depth, p.value::float8 as value from page p where p.page_id = r.page_id offset 0
    ) p on true
    cross join lateral (
        select u.url, r.ord, least(coalesce(p.depth, 0) + 1, 32767) as depth,
               case when p.value > 0 then greatest(g.first_share * p.value, least_amount()) else p.value end as worth
        from unnest(r.links[:most_links()]) as u (url)
        union all
        -- A redirect is no link: its target is as far away as the page itself, and worth as much.
        select r.redirect_to, -r.ord, coalesce(p.depth, 0), p.value where r.redirect_to is not null
    ) l
    where r.problem is null;

    pages := array(
        select i.page_id
        from intern_pages(t, coalesce(urls, '{}'), worths, null, null, null, depths, true) i
        order by i.ord);
    select array_agg(l::found_links) into led_to
    from (
        select abs(o.ord) as ord,
               o.source as page_id,
               coalesce(string_agg(distinct int8send(o.page_id), ''::bytea)
                            filter (where o.ord > 0 and o.page_id <> o.source), '') as targets,
               min(o.page_id) filter (where o.ord < 0) as moved_to
        from unnest(ords, sources, pages) as o (ord, source, page_id)
        group by abs(o.ord), o.source
        union all
        select r.ord, r.page_id, '', null from unnest(results) r where r.links = '{}' and r.redirect_to is null
    ) l;
    return led_to;
end $$;
comment on function recrawl_internal.intern_links(timestamptz, recrawl_internal.result[]) is
    'Finds or makes the pages that results link and redirect to.';

-- A page whose target has moved itself hands over to where that leads; in a circle every page would be lost, so it is
-- not closed. Sources and targets are locked so that what is found here still holds when it is written; and with them,
-- in order of id, all pages that are written afterwards.
create or replace function recrawl_internal.resolved_redirects(
    led_to recrawl_internal.found_links[], reported bigint[]
) returns bigint[]
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; locks page by id
declare
    redirects bigint[];                -- by ord
    moving    bigint[] := '{}';        -- pages of this batch that move, and to where
    moving_to bigint[] := '{}';
    redirect  record;
    target    bigint;
    state     text;
begin
    perform from page p
    where p.page_id = any (array(select unnest(reported) union select f.moved_to from unnest(led_to) f))
    order by p.page_id
    for no key update;

    for redirect in
        select f.ord, f.page_id, f.moved_to from unnest(led_to) f where f.moved_to is not null order by f.ord
    loop
        target := redirect.moved_to;
        for hop in 1 .. 10 loop
            exit when target is null or target = redirect.page_id;
            if target = any (moving) then
                target := moving_to[array_position(moving, target)];
                continue;
            end if;
            select p.state, case p.state when 'moved' then p.moved_to when 'live' then target end into state, target
            from page p where p.page_id = target;
            exit when state = 'live';
        end loop;
        if target <> redirect.page_id and state = 'live' then
            redirects[redirect.ord] := target;
            moving := moving || redirect.page_id;
            moving_to := moving_to || target;
        end if;
    end loop;
    return redirects;
end $$;
comment on function recrawl_internal.resolved_redirects(recrawl_internal.found_links[], bigint[]) is
    'Where each redirected page really leads, by ord of its result; null where that is nowhere.';

create or replace function recrawl_internal.replace_links(led_to recrawl_internal.found_links[], ords int[])
returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: hashes; writes link; locks link by page id
declare
    changed bigint[];
begin
    with replaced as (
        insert into link (page_id, targets)
        select distinct on (f.page_id) f.page_id, f.targets
        from unnest(ords) with ordinality as o (ord, turn)
        join unnest(led_to) f on f.ord = o.ord
        order by f.page_id, o.turn desc       -- the last that was judged
        on conflict (page_id) do update set targets = excluded.targets where link.targets <> excluded.targets
        returning page_id
    )
    select array_agg(page_id) into changed from replaced;
    perform tell_graph(changed) where changed is not null;
end $$;
comment on function recrawl_internal.replace_links(recrawl_internal.found_links[], int[]) is
    'Puts what results link to in the place of what their pages linked to before; tells the graph what changed.';
