-- add_pages: takes in URLs. It returns one row for each URL, in order. An invalid URL does not affect the others.

-- An argument as one element for each of n URLs: an array of one element counts for all of them.
create or replace function one_for_each(a anyarray, n int) returns anyarray
language plpgsql immutable strict as $$
begin
    return case when cardinality(a) = 1 then array_fill((array(select unnest(a)))[1], array[n]) else a end;
end $$;

create or replace function add_pages_at(
    t timestamptz, urls text[], value float8[], rate float8[], due timestamptz[], meta jsonb[], host text[]
) returns setof recrawl.added_page
language plpgsql volatile as $$
declare
    n constant int := cardinality(urls);
begin
    perform check_isolation('add_pages');
    perform refuse(format('add_pages: %s must have one element, or one for each of the %s urls, got %s',
                          a.name, n, a.length))
    from (values ('value', cardinality(value)), ('rate', cardinality(rate)), ('due', cardinality(due)),
                 ('meta', cardinality(meta)), ('host', cardinality(host))) as a (name, length)
    where a.length not in (1, n);

    host := array(
        select case when h.name is not null then coalesce(plain_host(h.name), '') end
        from unnest(host) with ordinality as h (name, place)
        order by h.place);
    due := one_for_each(due, n);
    if n > 1 and due is not null then
        -- Pages with the same due time become due a microsecond apart, in the order given, as in fetch_now().
        due := array(
            select case when within_reach(d.due) then
                       d.due - interval '1 microsecond'
                               * (row_number() over (partition by d.due order by d.place desc) - 1)
                   else d.due end
            from unnest(add_pages_at.due) with ordinality as d (due, place)
            order by d.place);
    end if;
    return query
    select * from intern_pages(t, array(
        select (u.url, u.value, u.rate, u.due, u.meta, u.asked_as, 0, null)::given_url
        from unnest(urls, one_for_each(add_pages_at.value, n), one_for_each(add_pages_at.rate, n), add_pages_at.due,
                    one_for_each(add_pages_at.meta, n), one_for_each(add_pages_at.host, n)) with ordinality
             as u (url, value, rate, due, meta, asked_as, place)
        where u.place <= n
        order by u.place), false);
end $$;

create or replace function recrawl.add_pages(
    urls text[], value float8[] default null, rate float8[] default null, due timestamptz[] default null,
    meta jsonb[] default null, host text[] default null
) returns setof recrawl.added_page
language plpgsql volatile security definer as $$
begin
    return query select * from add_pages_at(clock_timestamp(), urls, value, rate, due, meta, host);
end $$;
comment on function recrawl.add_pages is
'Adds URLs to the crawl. Returns one row for each URL, in the same order. code is new, known (already in the crawl),
excluded or invalid. detail says why a URL is excluded or invalid.

* urls: the URLs. An invalid URL does not stop the others.
* value: how much a fresh copy of the page is worth; 1 is the average. Without it the value is 1 until the job opic
  computes it from the links.
* rate: changes per day. Without it recrawl learns the rate.
* due: the time of the first fetch, from 1970 to 2200. Without it the page waits among the new pages. With infinity the
  page is not fetched until you call fetch_now, or add_pages with another due.
* meta: any JSON that you want to store with the page. next_pages returns it. At most 100 levels deep, with numbers
  between -1e308 and 1e308.
* host: the name of another host, for example the registered domain. The URL then belongs to that host, and shares its
  gap, slots, blocks and limits. The argument also decides for all later URLs of the same host name. It has no effect if
  the host name of the URL is already in the crawl.

Give each argument one element for all URLs, or one for each URL. Any other number of elements raises an error. If a
page is already in the crawl, the other arguments do not change it, with one exception: if the page is done or
declined, due schedules it again.';
grant execute on function recrawl.add_pages to recrawl_crawler, recrawl_operator;
