-- The robots.txt of each site (scheme, host and port), kept for all crawlers. All sites of a host share the gap of the
-- host. The text is only stored here. Crawlers interpret it.

-- The site of a URL: scheme, host and port in canonical spelling; null for an invalid URL.
create or replace function site_of(url text) returns text
language sql immutable parallel safe
return substring(canonical_of(url) from '^[^/]*//[^/]*');

create or replace function robots_at(t timestamptz, urls text[]) returns setof recrawl.site_robots
language plpgsql stable as $$
-- plans: lookups
begin
    return query
    -- A time more than a day ahead was written while the clock was ahead.
    select u.ord::int, r.site, r.status::int, r.rules,
           case when r.good_until between t and t + interval '24 hours' + small_step() then r.good_until - t
                else interval '0' end
    from unnest(urls) with ordinality as u (url, ord)
    cross join lateral (select site_of(u.url) as site offset 0) s
    join robots r on r.site = s.site
    order by u.ord;
end $$;

create or replace function recrawl.robots(urls text[]) returns setof recrawl.site_robots
language plpgsql volatile security definer as $$
begin
    return query select * from robots_at(clock_timestamp(), urls);
end $$;
comment on function recrawl.robots is
    'Returns the stored robots.txt of the sites of some URLs: one row for each URL, in the same order. A site is '
    'scheme, host and port. A URL has no row if the robots.txt of its site is not stored yet: fetch it, and call '
    'set_robots.';
grant execute on function recrawl.robots to recrawl_crawler;

-- If robots.txt cannot be fetched, everything is forbidden, unless an older robots.txt is known: that one counts for at
-- least another hour (RFC 9309, 2.3.1.4 and 2.4). A host that answers robots.txt with 429 or 503 is blocked, each time
-- for longer. A shorter Retry-After does not shorten the block: with a Retry-After of one second the host would get a
-- request each second forever.
create or replace function set_robots_at(
    t timestamptz, url text, status int, rules text, crawl_delay float8, retry_after text default null
) returns boolean
language plpgsql volatile as $$
-- plans: lookups; writes robots; locks new keys, robots, host
declare
    longest constant int := 500 * 1024;          -- characters; RFC 9309 (2.5) requires at least this many bytes
    asked   constant interval :=
        case when crawl_delay between 0 and 1e9 then crawl_delay * interval '1 second' end;
    reason  constant text := format('its robots.txt answered %s', status);
    parsed  record;
    id      bigint;
    known   boolean;
    before  interval;                            -- the longest delay of the sites of this host, before this call
begin
    perform check_isolation('set_robots');
    select * into parsed from parse_url(set_robots_at.url);
    if parsed.canonical is null then
        perform refuse(format('set_robots: url must be a URL of the site, got %s',
                              coalesce(quote_literal(left(set_robots_at.url, 200)), 'null')));
    elsif problem_with(status, false, null, null) is not null then
        perform refuse('set_robots: ' || problem_with(status, false, null, null));
    end if;
    id := host_for_crawler(t, 'set_robots', parsed.host);
    if status <= 0 or status = 429 or status >= 500 then
        update robots r set
            good_until = case when r.good_until between t + '1 hour' and t + interval '24 hours' + small_step()
                              then r.good_until else t + interval '1 hour' end,
            status = set_robots_at.status
        where r.site = site_of(set_robots_at.url);
        known := found;
        if status in (429, 503) then
            -- strike_host() adds no strike to a blocked host. So the second call only makes the block longer, if
            -- Retry-After is longer.
            perform strike_host(id, null, reason, t);
            perform strike_host(id, wait_asked_for(retry_after, t), reason, t);
        end if;
        return known;
    end if;

    before := (select max(r.crawl_delay) from robots r where r.host_id = id);
    insert into robots as r (site, host_id, good_until, crawl_delay, status, rules)
    values (site_of(set_robots_at.url), id, t + interval '24 hours', asked, set_robots_at.status,
            case when set_robots_at.status between 200 and 299 then left(set_robots_at.rules, longest) end)
    on conflict (site) do update set
        good_until = excluded.good_until, crawl_delay = excluded.crawl_delay, status = excluded.status,
        rules = excluded.rules;
    -- Locked by a statement of its own: the next one then sees a delay that a report has just stored.
    perform from host h where h.host_id = id for update;
    -- If the delay of the host is longer than the delay of every robots.txt of the host, a report gave it. It stays
    -- until another report.
    perform set_crawl_delay(id, case when h.crawl_delay > coalesce(before, '0') then h.crawl_delay end, t)
    from host h
    where h.host_id = id and (asked is not null or h.crawl_delay is not null);
    return true;
end $$;

create or replace function recrawl.set_robots(
    url text, status int, rules text default null, crawl_delay float8 default null, retry_after text default null
) returns boolean
language plpgsql volatile security definer as $$
begin
    return set_robots_at(clock_timestamp(), url, status, rules, crawl_delay, retry_after);
end $$;
comment on function recrawl.set_robots is
'Stores the answer for the robots.txt of a site, for all crawlers. Returns false if no page of the site may be fetched:
robots.txt could not be fetched, and no earlier one is stored.

* url: any URL of the site (scheme, host and port).
* status: the HTTP status. 0 or a negative number means: there was no answer.
* rules: the text of robots.txt. recrawl stores the first 512,000 characters. Rules count only
  with a status of 2xx.
* crawl_delay: the delay in seconds that robots.txt asks your crawler to keep.
* retry_after: the header Retry-After. It counts with 429 and 503.

A robots.txt counts for 24 hours. 3xx and 4xx except 429 mean: everything is allowed. After 429, 5xx or no answer, the
stored robots.txt counts for at least one more hour. 429 and 503 also block the host. The first block takes about 60
seconds, and each further block in a row takes twice as long. No block is shorter than retry_after, up to a day.';
grant execute on function recrawl.set_robots to recrawl_crawler;
