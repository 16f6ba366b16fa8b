-- add_pages: takes in URLs. It returns one row for each URL, in order. An invalid URL does not affect the others.

create or replace function recrawl_internal.add_pages_at(
    t timestamptz, urls text[], value float8[], rate float8[], due timestamptz[], meta jsonb[],
    host text[]
) returns setof recrawl.added_page
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
declare
    bad record;
begin
    perform check_isolation('add_pages');
    for bad in
        select a.name, a.length
        from (values
            ('value', cardinality(value)),
            ('rate', cardinality(rate)),
            ('due', cardinality(due)),
            ('meta', cardinality(meta)),
            ('host', cardinality(host))
        ) as a (name, length)
        where a.length not in (1, cardinality(urls))
    loop
        perform refuse(format('add_pages: %s must have one element, or one for each of the %s urls, got %s',
                              bad.name, cardinality(urls), bad.length));
    end loop;

    value := plain_array(value);
    rate := plain_array(rate);
    due := plain_array(due);
    meta := plain_array(meta);
    host := array(
        select case when h.name is not null then coalesce(plain_host(h.name), '') end
        from unnest(host) with ordinality as h (name, place)
        order by h.place);
    if cardinality(urls) > 1 and due is not null then
        -- Pages with the same due time become due a microsecond apart, in the order given, as in fetch_now().
        due := array(
            select case when within_reach(g.due) then
                       g.due - interval '1 microsecond'
                               * (row_number() over (partition by g.due order by u.place desc) - 1)
                   else g.due end
            from unnest(urls, add_pages_at.due) with ordinality as u (url, due, place)
            cross join lateral (
                select case when cardinality(add_pages_at.due) = 1 then add_pages_at.due[1] else u.due end as due
            ) g
            order by u.place);
    end if;
    return query select * from intern_pages(t, urls, value, rate, due, meta, host, '{0}', false);
end $$;
comment on function recrawl_internal.add_pages_at(
    timestamptz, text[], float8[], float8[], timestamptz[], jsonb[], text[]
) is
    'add_pages at a given time.';

create or replace function recrawl.add_pages(
    urls text[], value float8[] default null, rate float8[] default null, due timestamptz[] default null,
    meta jsonb[] default null, host text[] default null
) returns setof recrawl.added_page
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query select * from add_pages_at(clock_timestamp(), urls, value, rate, due, meta, host);
end $$;
comment on function recrawl.add_pages(text[], float8[], float8[], timestamptz[], jsonb[], text[]) is
'Adds URLs to the crawl. Returns one row for each URL, in the same order. code is new, known (already in the crawl),
excluded or invalid. detail says why a URL is excluded or invalid.

* urls: the URLs. An invalid URL does not stop the others.
* value: how much a fresh copy of the page is worth; 1 is the average. Without it the value is 1 until the links
  decide.
* rate: changes per day. Without it recrawl learns the rate.
* due: the time of the first fetch, from 1970 to 2200. Without it the page waits among the new pages. infinity: never,
  until you call fetch_now, or add_pages with due.
* meta: any JSON of yours, which next_pages returns. At most 100 levels deep, with numbers between -1e308 and 1e308.
* host: the host name whose gap, slots, blocks and limits the URL shares, for example its registered domain. It
  applies to all later URLs of the same host name too. It has no effect if the host name of the URL is already in the
  crawl.

Give each argument one element for all URLs, or one for each URL. Any other number of elements raises an error. A page
that is already in the crawl keeps its values. If such a page is done or declined, due schedules it again.';
grant execute on function recrawl.add_pages to recrawl_crawler, recrawl_operator;
