-- explain_page: says what is known of a page, and why it is not handed out now. Each row has a topic, a code, a
-- sentence, advice, and the figures. The function only reads, and all rows come from one snapshot.
-- docs/explain.md lists the codes.

-- The reasons why a live page is not handed out now, the reason that lasts longest first. If a hold of explain_holds()
-- applies, the reasons about the turn of the page are left out. Exceptions: host_gap, new_place and new_budget, which
-- may last longer than the hold.
create or replace function explain_now(t timestamptz, p page, h host, s setting) returns setof recrawl.explanation
language plpgsql stable as $$
declare
    place   constant text := place_of(t, p);
    reasons recrawl.explanation[];
begin
    if place = 'leased' then
        return query select * from explain_lease(t, p);
        -- A crawler has the page. These reasons may still keep it from fetching the page.
        return query
        select 'also', e.code, e.says, e.fix, e.detail
        from explain_holds(t, h, s) e
        where e.code in ('paused', 'host_blocked');
        return;
    end if;
    reasons := array(select e from explain_holds(t, h, s) e);
    reasons := reasons || array(
        select e from explain_revisit(t, p, h, s) e
        where place = 'queue' and p.due_at <= t and (reasons = '{}' or e.code = 'host_gap')
        union all
        select e from explain_new(t, p, h, s) e
        where place = 'new' and (reasons = '{}' or e.code in ('new_place', 'new_budget'))
        union all
        select e from explain_wait(t, p, s) e where place = 'queue' and p.due_at > t
        union all
        select e from explain_place(t, p, place) e);
    return query
    select case when row_number() over by_time = 1 then 'now' else 'also' end, r.code, r.says, r.fix,
           r.detail || jsonb_build_object('until', case when isfinite(u.until) then u.until end)
    from unnest(reasons) with ordinality as r (topic, code, says, fix, detail, nth)
    cross join lateral (select (r.detail ->> 'until')::timestamptz as until) u
    window by_time as (order by coalesce(u.until, t) desc, r.nth)
    order by coalesce(u.until, t) desc, r.nth;
    -- The new due time is still in the inbox. If the old place is due, the page may be handed out until upkeep brings
    -- the new one into the queue.
    if place = 'inbox' and p.due_at > t then
        return query select 'also', w.code, w.says, w.fix, w.detail from explain_wait(t, p, s) w;
    end if;
end $$;

create or replace function explain_page_at(t timestamptz, page_id bigint) returns setof recrawl.explanation
language plpgsql stable set timezone = 'UTC' as $$
-- plans: lookups
declare
    p page;
    h host;
    s setting;
begin
    select * into p from page q where q.page_id = explain_page_at.page_id;
    if p.page_id is null then
        return query
        select 'now', 'no_page',
               coalesce('There is no page with the page_id ' || page_id || '.', 'The page_id is null.'), null,
               jsonb_build_object('page_id', page_id);
        return;
    end if;
    select * into h from host o where o.host_id = p.host_id;
    select * into s from setting;
    return query
    select 'page', 'known', format('Page %s of the host %s: %s', p.page_id, h.name, p.url), null,
           jsonb_build_object('page_id', p.page_id, 'url', p.url, 'host', h.name, 'state', p.state, 'as_of', t);
    if p.state = 'live' then
        return query select * from explain_now(t, p, h, s);
    else
        return query select * from explain_dead(t, p);
    end if;
    return query select * from explain_last(t, p);
    return query select * from explain_worth(t, p, h, s) where p.state = 'live';
end $$;

-- A number of up to 18 digits always fits into a bigint, so it is taken for a page_id.
create or replace function explain_page_at(t timestamptz, url text) returns setof recrawl.explanation
language plpgsql stable set timezone = 'UTC' as $$
-- plans: lookups
declare
    parsed record;
    id     bigint;
    host   constant text := plain_host(url);
begin
    if url ~ '^\s*-?\d{1,18}\s*$' then
        return query select * from explain_page_at(t, url::bigint);
        return;
    end if;
    select * into parsed from parse_url(url);
    select p.page_id into id from page p where p.key = url_key(parsed.canonical);
    if parsed.problem is not null and exists (select from host_name n where n.name = host) then
        return query
        select e.* from host_name n cross join lateral explain_host(t, n.name, n.host_id) e where n.name = host;
    elsif parsed.problem is not null then
        return query
        select 'now', 'invalid',
               format('This is not a valid URL: %s. Give the URL or the page_id of a page, or the name of a host that '
                      'has pages.', parsed.problem), null,
               jsonb_build_object('problem', parsed.problem);
    elsif id is null then
        return query select * from explain_unknown(parsed.url, parsed.host, parsed.canonical);
    else
        return query select * from explain_page_at(t, id);
    end if;
end $$;

create or replace function recrawl.explain_page(page_id bigint) returns setof recrawl.explanation
language sql stable security definer as $$
    select * from explain_page_at(clock_timestamp(), page_id)
$$;
comment on function recrawl.explain_page(bigint) is
'Explains a page: why it is not handed out now, when it will be, and what you can do. Returns one row for each topic:

* page: which page it is.
* now: why the page is not handed out now: the reason that lasts longest.
* also: a further reason.
* last: the result of the last request.
* often: how often the page is fetched, and why.
* changes: how often the page changes.
* value: how much a fresh copy is worth.

docs/explain.md lists all codes.';

create or replace function recrawl.explain_page(url text) returns setof recrawl.explanation
language sql stable security definer as $$
    select * from explain_page_at(clock_timestamp(), url)
$$;
comment on function recrawl.explain_page(text) is
    'Like explain_page(page_id), for a URL in any spelling. A number counts as a page_id. '
    'For a URL that is not in the crawl the answer says if add_pages would add it. For a host name without http:// '
    'the answer is about the host.';
grant execute on function recrawl.explain_page(bigint), recrawl.explain_page(text) to recrawl_reader;
