-- report() without JSON, for crawlers that report many pages at once and nothing but their outcomes.

create or replace function recrawl_internal.report_pages_at(
    t timestamptz, page_ids bigint[], lease_ids bigint[], statuses int[], changed boolean[], fetched_at timestamptz[],
    content_hash text[], etag text[], last_modified timestamptz[]
) returns setof recrawl.report_result
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
declare
    bad record;
begin
    perform check_isolation('report_pages');
    for bad in
        select a.name, a.length
        from (values
            ('lease_ids', cardinality(lease_ids)),
            ('statuses', cardinality(statuses)),
            ('changed', cardinality(changed)),
            ('fetched_at', cardinality(fetched_at)),
            ('content_hash', cardinality(content_hash)),
            ('etag', cardinality(etag)),
            ('last_modified', cardinality(last_modified))
        ) as a (name, length)
        where a.length <> cardinality(page_ids)
    loop
        perform refuse(format('report_pages: %s must have one element for each of the %s page_ids, got %s',
                              bad.name, cardinality(page_ids), bad.length));
    end loop;

    return query select * from record_results(t, array(
        select r::result
        from (
            select
                g.ord::int as ord,
                case when g.page_id is null then 'page_id is missing'
                     else problem_with(g.status, false, g.fetched_at, g.content_hash) end as problem,
                g.page_id as page_id,
                null::text as url,
                g.lease_id as lease_id,
                g.status as status,
                g.fetched_at as fetched_at,
                g.changed as changed,
                g.content_hash as content_hash,
                null::int as changes,
                case when isfinite(g.last_modified) then g.last_modified end as last_modified,
                usable_etag(g.etag) as etag,
                null::text[] as links,
                null::interval as retry_after,
                null::interval as crawl_delay,
                null::text as redirect_to,
                null::boolean as robots_denied,
                null::jsonb as meta,
                null::real as relevance,
                null::int[] as sketch
            from unnest(page_ids, lease_ids, statuses, changed, fetched_at, content_hash, etag, last_modified)
                 with ordinality
                 as g (page_id, lease_id, status, changed, fetched_at, content_hash, etag, last_modified, ord)
        ) r));
end $$;
comment on function recrawl_internal.report_pages_at(
    timestamptz, bigint[], bigint[], int[], boolean[], timestamptz[], text[], text[], timestamptz[]
) is
    'report_pages at a given time.';

create or replace function recrawl.report_pages(
    page_ids bigint[], lease_ids bigint[], statuses int[], changed boolean[] default null,
    fetched_at timestamptz[] default null, content_hash text[] default null, etag text[] default null,
    last_modified timestamptz[] default null
) returns setof recrawl.report_result
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query
    select * from report_pages_at(
        clock_timestamp(), page_ids, lease_ids, statuses, changed, fetched_at, content_hash, etag, last_modified);
end $$;
comment on function recrawl.report_pages(
    bigint[], bigint[], int[], boolean[], timestamptz[], text[], text[], timestamptz[]
) is
    'report() with arrays instead of JSON: element n of each is about page n. Says what report says.';
grant execute on function recrawl.report_pages to recrawl_crawler;
