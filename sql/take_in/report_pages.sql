-- report() without JSON, for crawlers that report many pages in one call.

create or replace function report_pages_at(
    t timestamptz, page_ids bigint[], lease_ids bigint[], statuses int[], changed boolean[], fetched_at timestamptz[],
    content_hash text[], etag text[], last_modified timestamptz[], changes int[] default null,
    sketch int[] default null, links jsonb[] default null, relevance float8[] default null,
    retry_after text[] default null, crawl_delay float8[] default null, redirect_to text[] default null,
    robots_denied boolean[] default null, meta jsonb[] default null, due timestamptz[] default null,
    declined boolean[] default null
) returns setof recrawl.report_result
language plpgsql volatile as $$
-- plans: lookups
declare
    sketches constant int[] := array(select unnest(sketch));
begin
    perform check_isolation('report_pages');
    perform refuse(format('report_pages: %s must have %s for each of the %s page_ids, got %s', a.name,
                          case a.expected when 1 then 'one element' else a.expected || ' elements' end,
                          cardinality(page_ids), a.length))
    from (values
        ('lease_ids', 1, cardinality(lease_ids)), ('statuses', 1, cardinality(statuses)),
        ('changed', 1, cardinality(changed)), ('fetched_at', 1, cardinality(fetched_at)),
        ('content_hash', 1, cardinality(content_hash)), ('etag', 1, cardinality(etag)),
        ('last_modified', 1, cardinality(last_modified)), ('changes', 1, cardinality(changes)),
        ('sketch', sketch_values(), cardinality(sketch)), ('links', 1, cardinality(links)),
        ('relevance', 1, cardinality(relevance)), ('retry_after', 1, cardinality(retry_after)),
        ('crawl_delay', 1, cardinality(crawl_delay)), ('redirect_to', 1, cardinality(redirect_to)),
        ('robots_denied', 1, cardinality(robots_denied)), ('meta', 1, cardinality(meta)),
        ('due', 1, cardinality(due)), ('declined', 1, cardinality(declined))
    ) as a (name, expected, length)
    where a.length <> a.expected * cardinality(page_ids);

    return query select * from record_results(t, array(
        select checked((
            g.ord::int,
            case when g.page_id is null then 'page_id is missing'
                 when jsonb_typeof(g.links) not in ('array', 'null') then 'links must be a JSON array of URLs' end,
            g.page_id, g.lease_id, g.status, g.fetched_at, g.changed, g.changes, g.etag, g.last_modified,
            g.content_hash,
            (null, l.links, g.relevance, l.sketch, g.meta, g.due, g.declined, g.robots_denied, g.redirect_to,
             g.retry_after, g.crawl_delay)::result_extras)::result)
        from unnest(page_ids, lease_ids, statuses, changed, fetched_at, content_hash, etag, last_modified, changes,
                    links, relevance, retry_after, crawl_delay, redirect_to, robots_denied, meta, due, declined)
             with ordinality
             as g (page_id, lease_id, status, changed, fetched_at, content_hash, etag, last_modified, changes,
                   links, relevance, retry_after, crawl_delay, redirect_to, robots_denied, meta, due, declined, ord)
        -- A separate join for the lists, because checked() is inlined only if its arguments contain no query.
        cross join lateral (
            select case when jsonb_typeof(g.links) = 'array'
                        then array(select jsonb_array_elements_text(g.links)) end as links,
                   case when cardinality(sketches) > 0
                        then nullif(sketches[(g.ord - 1) * sketch_values() + 1 : g.ord * sketch_values()],
                                    array_fill(null::int, array[sketch_values()])) end as sketch
            offset 0
        ) l
        order by g.ord));
end $$;

create or replace function recrawl.report_pages(
    page_ids bigint[], lease_ids bigint[], statuses int[], changed boolean[] default null,
    fetched_at timestamptz[] default null, content_hash text[] default null, etag text[] default null,
    last_modified timestamptz[] default null, changes int[] default null, sketch int[] default null,
    links jsonb[] default null, relevance float8[] default null, retry_after text[] default null,
    crawl_delay float8[] default null, redirect_to text[] default null, robots_denied boolean[] default null,
    meta jsonb[] default null, due timestamptz[] default null, declined boolean[] default null
) returns setof recrawl.report_result
language plpgsql volatile security definer as $$
begin
    return query
    select * from report_pages_at(
        clock_timestamp(), page_ids, lease_ids, statuses, changed, fetched_at, content_hash, etag, last_modified,
        changes, sketch, links, relevance, retry_after, crawl_delay, redirect_to, robots_denied, meta, due, declined);
end $$;
comment on function recrawl.report_pages is
'Takes the results of fetches like report(), as arrays instead of JSON. Element n of each array is about page n. null =
nothing is known. Returns the same rows as report().

* links: a JSON array of URLs for each page.
* sketch: the sketches of all pages one after the other, eight numbers for each page. A page without a sketch has
  eight nulls.
* the other arguments: as the keys of report().';
grant execute on function recrawl.report_pages to recrawl_crawler;
