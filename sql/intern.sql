-- From URLs to pages: finds the known ones, takes in the others. Never locks a host: new pages reach the queue by the inbox.
-- Unique indexes are entered in order of their keys, so that overlapping batches wait for each other but never in a circle.

create or replace function recrawl_internal.intern_hosts(names text[]) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    with unknown as materialized (
        select u.name, nextval('host_id') as host_id
        from (select distinct n as name from unnest(names) as n
              where not exists (select from host_name h where h.name = n)
              order by n) u
    ),
    named as (
        insert into host_name (name, host_id) select name, host_id from unknown order by name
        on conflict (name) do nothing
        returning name, host_id
    )
    insert into host (host_id, name) select host_id, name from named;
end $$;
comment on function recrawl_internal.intern_hosts(text[]) is 'Makes sure that every named host has its rows.';

-- The part of a batch that no page row has yet, one item a page, in order of keys.
create or replace function recrawl_internal.intern_unknown(
    t timestamptz, items recrawl_internal.intern_item[], are_links boolean,
    out place int, out page_id bigint, out reason text
) returns setof record
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    s       setting;
    reasons text[];                    -- item by item: why it is kept out
begin
    select * into s from setting;
    lock table exclusion in row share mode;    -- see exclude()
    reasons := array(
        select case
            when i.depth > s.max_depth then format('%s links from the start, the setting max_depth is %s', i.depth, s.max_depth)
            else (select format('matches the excluded pattern %s', e.pattern) from exclusion e where i.canonical ~ e.pattern limit 1)
        end
        from unnest(items) as i
        order by i.place);
    perform intern_hosts(array(
        select i.host from unnest(items, reasons) as i (place, ord, key, url, canonical, host, value, rate, due, meta, depth, reason) where i.reason is null));

    return query
    with item as (
        select i.*, h.host_id, coalesce(h.max_pages, s.max_pages) as max_pages,
               row_number() over (partition by h.host_id order by i.ord) as nth_of_host
        from unnest(items, reasons) as i (place, ord, key, url, canonical, host, value, rate, due, meta, depth, reason),
             lateral (select n.host_id, n.max_pages from host_name n where n.name = i.host offset 0) h
        where i.reason is null
    ),
    -- Pages that wait in the inbox count for max_pages too; past ten thousand of them the limit may be overshot.
    waiting as (
        select jsonb_object_agg(host_id, pages) as pages_of_host
        from (select host_id, count(*) as pages
              from (select * from inbox order by at desc limit 10000) latest
              where old_due is null and old_rank is null
              group by host_id) w
    ),
    judged as materialized (
        select i.*,
               max_pages is null
               or nth_of_host
                  + (select h.pages from host h where h.host_id = i.host_id)
                  + coalesce(((select pages_of_host from waiting) ->> i.host_id::text)::int, 0) <= max_pages as is_welcome
        from item i
        order by i.ord
    ),
    -- Numbered in the order given, which decides among new pages of the same value; inserted in order of keys.
    numbered as materialized (
        select *, nextval('page_id') as page_id from judged where is_welcome
    ),
    inserted as (
        insert into page (page_id, key, host_id, url, value, pinned_value, rate, due_at, meta, depth)
        select page_id, key, host_id, url, coalesce(value, 1), case when not are_links then value end, rate, due, meta, coalesce(depth, 0)
        from numbered
        order by key
        on conflict (key) do nothing
        returning page_id, host_id, value, due_at
    ),
    told as (
        insert into inbox (host_id, page_id, new_due, new_rank)
        select host_id, page_id, due_at, case when due_at is null then -value end from inserted
    ),
    told_graph as (
        insert into graph_news (page_id) select page_id from inserted where not (select is_news_full())
    )
    select n.place, case when (n.page_id in (select i.page_id from inserted i)) is true then n.page_id end, null
    from numbered n
    union all
    select j.place, null, format('the host %s has as many pages as it may have', j.host) from judged j where not j.is_welcome
    union all
    select i.place, null, i.reason
    from unnest(items, reasons) as i (place, ord, key, url, canonical, host, value, rate, due, meta, depth, reason)
    where i.reason is not null;
end $$;
comment on function recrawl_internal.intern_unknown(timestamptz, recrawl_internal.intern_item[], boolean) is
    'Takes in pages unless something keeps them out; one row per item: its page, or the reason why there is none, or neither when another crawler was first.';

create or replace function recrawl_internal.where_now(page_id bigint) returns bigint
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
declare
    next_id bigint;
begin
    for hop in 1 .. 10 loop
        select p.moved_to into next_id from page p where p.page_id = where_now.page_id and p.state = 'moved';
        exit when next_id is null;
        page_id := next_id;
    end loop;
    return page_id;
end $$;
comment on function recrawl_internal.where_now(bigint) is 'The page that a page has moved to in the end; itself if it did not move.';

-- Row n of the arrays is one URL; an array of one element serves all rows. Known pages keep what they have. Links lead to where
-- their target has moved, and the value they bring is a guess; one that somebody gives with a URL is pinned.
create or replace function recrawl_internal.intern_pages(
    t timestamptz, urls text[], page_values float8[], rates float8[], dues timestamptz[], metas jsonb[], depths int[], are_links boolean
) returns setof recrawl.added_page
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    unknown   intern_item[];
    -- Row by row: which of the pages below it names, or what is wrong with it.
    places    int[];
    problems  text[];
    -- Page by page, in order of keys; without nulls, so that an element is found without searching.
    firsts    int[];                   -- the first row that names it
    page_ids  bigint[];                -- 0 = none
    is_new    boolean[];
    reasons   text[];                  -- why there is none
    taken     int[] := '{}';           -- pages that somebody else made meanwhile
    outcome   record;
begin
    with parsed as materialized (
        select r.ord, p.url, p.canonical, p.host, w.problem, case when w.problem is null then url_key(p.canonical) end as key,
               g.value, g.rate, g.due, g.meta, g.depth
        from unnest(urls, page_values, rates, dues, metas, depths) with ordinality as r (raw, value, rate, due, meta, depth, ord)
        cross join lateral (
            select case when cardinality(page_values) = 1 then page_values[1] else r.value end as value,
                   case when cardinality(rates) = 1 then rates[1] else r.rate end as rate,
                   case when cardinality(dues) = 1 then dues[1] else r.due end as due,
                   case when cardinality(metas) = 1 then metas[1] else r.meta end as meta,
                   case when cardinality(depths) = 1 then depths[1] else r.depth end as depth
        ) g
        cross join lateral (select coalesce(is_canonical(r.raw), false) as is_clean offset 0) c
        cross join lateral (
            select r.raw as url, r.raw as canonical, split_part(r.raw, '/', 3) as host, null as problem where c.is_clean
            union all
            select * from parse_url(r.raw) where not c.is_clean
        ) p
        cross join lateral (
            select case
                when p.problem is not null then p.problem
                when not (g.value = 0 or g.value between 1e-30 and 1e30) then format('value must be 0 or between 1e-30 and 1e30, got %s', g.value)
                when not (g.rate = 0 or g.rate between 1e-30 and 1e30) then format('rate must be 0 or between 1e-30 and 1e30, got %s', g.rate)
                when not isfinite(g.due) then format('due must be a finite time, got %s', g.due)
            end as problem
        ) w
        where r.ord <= cardinality(urls)
    ),
    placed as materialized (
        select p.*, dense_rank() over (order by key) as place from parsed p
    ),
    found as materialized (
        select p.*, case when are_links and known.state = 'moved' then where_now(known.page_id) else known.page_id end as page_id, coalesce(known.state in ('excluded', 'forgotten'), false) as kept_out
        from (select distinct on (place) * from placed where key is not null order by place, ord) p
        left join lateral (select k.page_id, k.state from page k where k.key = p.key offset 0) known on true
    )
    select r.*, f.*
    into places, problems, firsts, page_ids, is_new, reasons, unknown
    from (select array_agg(place::int), array_agg(problem) from (select * from placed order by ord) p) r,
         (select array_agg(ord::int),
                 array_agg(case when kept_out then 0 else coalesce(page_id, 0) end),
                 array_agg(false),
                 array_agg(case when kept_out then 'the page was forgotten or excluded' end),
                 array_agg((place, ord, key, url, canonical, host, value, rate, due, meta, depth)::intern_item) filter (where page_id is null)
          from (select * from found order by place) p) f;

    if unknown is not null then
        for outcome in select * from intern_unknown(t, unknown, are_links) loop
            if outcome.page_id is not null then
                page_ids[outcome.place] := outcome.page_id;
                is_new[outcome.place] := true;
            elsif outcome.reason is not null then
                reasons[outcome.place] := outcome.reason;
            else
                taken := taken || outcome.place;
            end if;
        end loop;
        -- A fresh snapshot: where another crawler was first, its page is there by now.
        for outcome in
            select i.place, p.page_id
            from unnest(unknown) i
            join lateral (select p.page_id from page p where p.key = i.key offset 0) p on true
            where (i.place in (select unnest(taken))) is true
        loop
            page_ids[outcome.place] := outcome.page_id;
        end loop;
    end if;

    return query
    select r.ord::int, r.url,
           case when r.problem is null then nullif(page_ids[r.place], 0) end,
           case when r.problem is not null then 'invalid'
                when page_ids[r.place] = 0 then 'excluded'
                when is_new[r.place] and firsts[r.place] = r.ord then 'new'
                else 'known' end,
           case when r.problem is not null then r.problem
                when page_ids[r.place] = 0 then reasons[r.place] end
    from unnest(urls, places, problems) with ordinality as r (url, place, problem, ord);
end $$;
comment on function recrawl_internal.intern_pages(timestamptz, text[], float8[], float8[], timestamptz[], jsonb[], int[], boolean) is
    'Finds or makes the page of every URL; one row per URL, in order.';
