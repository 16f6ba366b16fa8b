-- From URLs to pages: finds the known pages and makes the others.

-- The page at the end of the redirects of a page; the page itself if it has not moved.
create or replace function where_now(page_id bigint) returns bigint
language plpgsql stable as $$
-- plans: lookups
declare
    next_id bigint;
begin
    for hop in 1 .. 20 loop        -- longer chains of redirects are not followed
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
            from unnest(given) with ordinality as g (url, value, rate, due, meta, asked_as, depth, moved_from_host, ord)
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
            (k.url, k.value, k.rate, k.due, k.meta, k.asked_as, k.depth, k.moved_from_host)::given_url
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
-- plans: hashes
declare
    urls     constant parsed_url[] := parsed_urls(given);
    pages    found_page[];             -- first the known pages, then all
    unknown  parsed_url[];             -- one URL for each page that has no row yet
    wanted   bigint[];                 -- known pages that are scheduled again
    again_at timestamptz[];
begin
    with
    -- One row for each page, with its page_id if it is known. A redirect to the page counts more than a link.
    found as materialized (
        select u.place, u::parsed_url as url, (u.given).due,
               case when are_links and known.state = 'moved' then where_now(known.page_id)
                    else known.page_id end as page_id,
               coalesce(known.state in ('excluded', 'kept_out'), false) as stays_out,
               known.state = 'live' and is_never(known.due_at) and (u.given).due < 'infinity' as is_wanted_again
        from (select distinct on (p.place) p.* from unnest(urls) p where p.key is not null
              order by p.place, (p.given).moved_from_host is null, p.ord) u
        left join lateral (select k.page_id, k.state, k.due_at from page k where k.key = u.key offset 0) known on true
    )
    select array_agg((place, case when not stays_out then page_id end, false,
                      case when stays_out then 'the page was kept_out or excluded' end)::found_page)
               filter (where page_id is not null),
           array_agg(page_id) filter (where is_wanted_again), array_agg(due) filter (where is_wanted_again),
           array_agg(url) filter (where page_id is null)
    into pages, wanted, again_at, unknown
    from found;

    if unknown is not null then
        pages := pages || array(select m from intern_where_free(t, unknown, are_links) m);
    end if;
    perform move_dues(wanted, again_at, 'set') where wanted is not null;

    return query
    select u.ord, (u.given).url, p.page_id,
           case when u.problem is not null then 'invalid'
                -- another transaction takes the URL in now
                when p.page_id is null and p.reason is null then 'waiting'
                when p.page_id is null then 'excluded'
                when p.is_new and (u.ord in (select n.ord from unnest(unknown) n)) is true then 'new'
                else 'known' end,
           coalesce(u.problem, p.reason)
    from unnest(urls) u
    left join unnest(pages) p on p.place = u.place
    order by u.ord;
end $$;
