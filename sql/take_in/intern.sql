-- From URLs to pages: finds the known pages and makes the others.

create or replace function recrawl_internal.where_now(page_id bigint) returns bigint
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
declare
    next_id bigint;
begin
    for hop in 1 .. 10 loop
        select t.page_id into next_id
        from page p join page t on t.page_id = p.moved_to       -- no row if the target was deleted
        where p.page_id = where_now.page_id and p.state = 'moved';
        exit when next_id is null;
        page_id := next_id;
    end loop;
    return page_id;
end $$;
comment on function recrawl_internal.where_now(bigint) is
    'The page at the end of the redirects of a page; the page itself if it has not moved.';

-- Element n of each array belongs to URL n. An array of one element counts for all URLs.
--
--   * A known page keeps its values. A page with no next due time (done, declined) is scheduled again if a due time is
--     given.
--   * A link to a page that has moved leads to the page at the end of its redirects.
--   * The value of a link is a guess. A value that a caller of add_pages gives is pinned.
--   * hosts: the host that a URL is requested as, already in plain spelling; '' if the given name is invalid.
create or replace function recrawl_internal.intern_pages(
    t timestamptz, urls text[], page_values float8[], rates float8[], dues timestamptz[], metas jsonb[],
    hosts text[], depths int[], are_links boolean
) returns setof recrawl.added_page
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
declare
    unknown   intern_item[];
    -- One element for each URL: the place of its page in the arrays below, or its problem.
    places    int[];
    problems  text[];
    -- One element for each page, in order of keys. No nulls in the first three: they make each access scan the array.
    firsts    int[];                   -- the first URL that names the page
    page_ids  bigint[];                -- 0 if there is no page
    is_new    boolean[];
    reasons   text[];                  -- why there is no page
    wanted    bigint[];                -- known pages that are scheduled again
    again_at  timestamptz[];
    taken     int[] := '{}';           -- places of pages that another transaction made first
    made      bigint[] := '{}';
    outcome   record;
begin
    with
    -- One row for each URL: its canonical spelling, the given values, and its problem if it has one.
    parsed as materialized (
        select r.ord, p.url, p.canonical, p.host, w.problem,
               case when w.problem is null then url_key(p.canonical) end as key,
               g.value, g.rate, g.due, g.meta, g.depth, nullif(g.asked_as, p.host) as asked_as
        from unnest(urls, page_values, rates, dues, metas, hosts, depths) with ordinality
             as r (raw, value, rate, due, meta, asked_as, depth, ord)
        cross join lateral (
            select case when cardinality(page_values) = 1 then page_values[1] else r.value end as value,
                   case when cardinality(rates) = 1 then rates[1] else r.rate end as rate,
                   case when cardinality(dues) = 1 then dues[1] else r.due end as due,
                   case when cardinality(metas) = 1 then metas[1] else r.meta end as meta,
                   case when cardinality(hosts) = 1 then hosts[1] else r.asked_as end as asked_as,
                   case when cardinality(depths) = 1 then depths[1] else r.depth end as depth
        ) g
        cross join lateral (select coalesce(is_canonical(r.raw), false) as is_clean offset 0) c
        cross join lateral (
            select r.raw as url, r.raw as canonical, split_part(r.raw, '/', 3) as host, null as problem where c.is_clean
            union all select * from parse_url(r.raw) where not c.is_clean
        ) p
        cross join lateral (
            select coalesce(
                p.problem,
                problem_with_amount('value', g.value),
                problem_with_amount('rate', g.rate),
                problem_with_due(g.due), problem_with_meta(g.meta),
                case when g.asked_as = '' then 'host must be a host name or address without port' end
            ) as problem
        ) w
        where r.ord <= cardinality(urls)
    ),
    -- Rows with the same key name the same page, and get the same place.
    placed as materialized (
        select p.*, dense_rank() over (order by key) as place from parsed p
    ),
    -- One row for each page: its page_id if it is known.
    found as materialized (
        select p.*,
               case when are_links and known.state = 'moved' then where_now(known.page_id)
                    else known.page_id end as page_id,
               coalesce(known.state in ('excluded', 'forgotten'), false) as kept_out,
               known.state = 'live' and is_never(known.due_at) and p.due < 'infinity' as is_wanted_again
        from (select distinct on (place) * from placed where key is not null order by place, ord) p
        left join lateral (select k.page_id, k.state, k.due_at from page k where k.key = p.key offset 0) known on true
    )
    select r.*, f.*
    into places, problems, firsts, page_ids, is_new, reasons, wanted, again_at, unknown
    from (select array_agg(place::int), array_agg(problem) from (select * from placed order by ord) p) r,
         (select array_agg(ord::int), array_agg(case when kept_out then 0 else coalesce(page_id, 0) end),
                 array_agg(false),
                 array_agg(case when kept_out then 'the page was forgotten or excluded' end),
                 array_agg(page_id) filter (where is_wanted_again), array_agg(due) filter (where is_wanted_again),
                 array_agg((place, ord, key, url, canonical, host, value, rate, due, meta, depth, asked_as
                           )::intern_item) filter (where page_id is null)
          from (select * from found order by place) p) f;

    perform move_dues(wanted, again_at, 'set') where wanted is not null;
    if unknown is not null then
        for outcome in select * from intern_where_free(t, unknown, are_links) loop
            if outcome.page_id is not null then
                page_ids[outcome.place] := outcome.page_id;
                is_new[outcome.place] := true;
                made := made || outcome.page_id;
            elsif outcome.reason is not null then
                reasons[outcome.place] := outcome.reason;
            else
                taken := taken || outcome.place;
            end if;
        end loop;
        perform tell_graph(made) where cardinality(made) > 0;
        -- A new statement has a new snapshot: it sees the pages that other transactions made first.
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
                when page_ids[r.place] = 0 and reasons[r.place] is null then 'waiting'
                when page_ids[r.place] = 0 then 'excluded'
                when is_new[r.place] and firsts[r.place] = r.ord then 'new'
                else 'known' end,
           case when r.problem is not null then r.problem
                when page_ids[r.place] = 0 then reasons[r.place] end
    from unnest(urls, places, problems) with ordinality as r (url, place, problem, ord);
end $$;
comment on function recrawl_internal.intern_pages(
    timestamptz, text[], float8[], float8[], timestamptz[], jsonb[], text[], int[], boolean
) is
    'Finds or makes the page of each URL. Returns one row for each URL, in order.';
