-- From URLs to pages: finds the known pages and makes the others.

-- The page at the end of the redirects of a page; the page itself if it has not moved.
create or replace function where_now(page_id bigint) returns bigint
language plpgsql stable as $$
-- plans: lookups
declare
    next_id bigint;
begin
    for hop in 1 .. 20 loop
        select t.page_id into next_id
        from page p join page t on t.page_id = p.moved_to       -- no row if the target was deleted
        where p.page_id = where_now.page_id and p.state = 'moved';
        exit when next_id is null;
        page_id := next_id;
    end loop;
    return page_id;
end $$;

-- The given URLs with their canonical spellings, hosts and keys, or with their problems, in the given order.
create or replace function parsed_urls(given given_url[]) returns parsed_url[]
language plpgsql stable as $$
-- plans: lookups
begin
    return (
        with
        -- Each URL with its two spellings and its host. A URL that is canonical already is its own spelling.
        spelled as (
            select g.*, p.url as fetch_url, p.canonical, p.host,
                   coalesce(
                       p.problem,
                       problem_with_amount('value', g.value),
                       problem_with_amount('rate', g.rate),
                       problem_with_due(g.due), problem_with_meta(g.meta),
                       case when g.asked_as = '' then 'host must be a host name or address without port' end
                   ) as problem
            from unnest(given) with ordinality as g (url, value, rate, due, meta, asked_as, depth, left_host, ord)
            cross join lateral (select coalesce(is_canonical(g.url), false) as is_clean offset 0) c
            cross join lateral (
                select g.url, g.url as canonical, split_part(g.url, '/', 3) as host, null as problem where c.is_clean
                union all select * from parse_url(g.url) where not c.is_clean
            ) p
        ),
        keyed as (select s.*, case when s.problem is null then url_key(s.canonical) end as key from spelled s)
        -- URLs with the same key name the same page, and get the same place.
        select array_agg((
            k.ord, k.place, k.problem, k.key, k.fetch_url, k.canonical, k.host, nullif(k.asked_as, k.host),
            (k.url, k.value, k.rate, k.due, k.meta, k.asked_as, k.depth, k.left_host)::given_url
        )::parsed_url order by k.ord)
        from (select *, dense_rank() over (order by key) as place from keyed) k);
end $$;

-- Finds or makes the page of each URL. Returns one row for each URL, in order.
--
--   1. Parse the URLs. The canonical spelling of a URL gives its key.
--   2. Look the keys up.
--   3. Make the unknown pages.
--   4. Schedule known pages again, if they have no next due time (done, declined) and a due time is given. Known pages
--      keep their values. Step 4 comes after step 3, because keys of new pages are locked before pages.
--
-- A link to a page that has moved leads to the page at the end of its redirects. The value of a link is a guess. A
-- value that a caller of add_pages gives is pinned.
create or replace function intern_pages(t timestamptz, given given_url[], are_links boolean)
returns setof recrawl.added_page
language plpgsql volatile as $$
-- plans: lookups
declare
    urls      constant parsed_url[] := parsed_urls(given);
    unknown   parsed_url[];            -- one URL for each page that has no row yet
    wanted    bigint[];                -- known pages that are scheduled again
    again_at  timestamptz[];
    -- By the place of the page. The first three arrays have no nulls: in an array with nulls each access reads all
    -- elements before it.
    firsts    int[];                   -- the first URL that names the page
    page_ids  bigint[];                -- 0 if there is no page
    is_new    boolean[];
    reasons   text[];                  -- why there is no page
    made      record;
begin
    with
    -- One row for each page, with its page_id if it is known. A redirect to the page counts more than a link.
    found as materialized (
        select u.place, u.ord, u::parsed_url as url, (u.given).due,
               case when are_links and known.state = 'moved' then where_now(known.page_id)
                    else known.page_id end as page_id,
               coalesce(known.state in ('excluded', 'kept_out'), false) as stays_out,
               known.state = 'live' and is_never(known.due_at) and (u.given).due < 'infinity' as is_wanted_again
        from (select distinct on (p.place) p.* from unnest(urls) p where p.key is not null
              order by p.place, (p.given).left_host is null, p.ord) u
        left join lateral (select k.page_id, k.state, k.due_at from page k where k.key = u.key offset 0) known on true
    )
    select array_agg(ord), array_agg(case when stays_out then 0 else coalesce(page_id, 0) end), array_agg(false),
           array_agg(case when stays_out then 'the page was kept_out or excluded' end),
           array_agg(page_id) filter (where is_wanted_again), array_agg(due) filter (where is_wanted_again),
           array_agg(url) filter (where page_id is null)
    into firsts, page_ids, is_new, reasons, wanted, again_at, unknown
    from (select * from found order by place) f;

    if unknown is not null then
        for made in select * from intern_where_free(t, unknown, are_links) loop
            page_ids[made.place] := coalesce(made.page_id, 0);
            is_new[made.place] := made.is_new;
            reasons[made.place] := made.reason;
        end loop;
    end if;
    perform move_dues(wanted, again_at, 'set') where wanted is not null;

    return query
    select u.ord, (u.given).url,
           case when u.problem is null then nullif(page_ids[u.place], 0) end,
           case when u.problem is not null then 'invalid'
                -- another transaction takes the URL in now
                when page_ids[u.place] = 0 and reasons[u.place] is null then 'waiting'
                when page_ids[u.place] = 0 then 'excluded'
                when is_new[u.place] and firsts[u.place] = u.ord then 'new'
                else 'known' end,
           case when u.problem is not null then u.problem
                when page_ids[u.place] = 0 then reasons[u.place] end
    from unnest(urls) u;
end $$;
