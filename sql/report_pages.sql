-- report() without JSON, for crawlers that report many pages at once and nothing but their outcomes.

create or replace function recrawl_internal.report_pages_at(
    t timestamptz, page_ids bigint[], lease_ids bigint[], statuses int[], changed boolean[], fetched_at timestamptz[],
    content_hash text[], etag text[], last_modified timestamptz[]
) returns setof recrawl.report_result
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set jit = off
as $$
declare
    bad record;
begin
    perform check_isolation('report_pages');
    for bad in
        select a.name, a.length from (values
            ('lease_ids', cardinality(lease_ids)), ('statuses', cardinality(statuses)), ('changed', cardinality(changed)),
            ('fetched_at', cardinality(fetched_at)), ('content_hash', cardinality(content_hash)), ('etag', cardinality(etag)),
            ('last_modified', cardinality(last_modified))
        ) as a (name, length)
        where a.length <> cardinality(page_ids)
    loop
        perform refuse(format('report_pages: %s must have one element for each of the %s page_ids, got %s', bad.name, cardinality(page_ids), bad.length));
    end loop;

    return query select * from record_results(t, array(
        select (r.ord, case
                   when r.page_id is null then 'page_id is missing'
                   when r.status is null then 'status is missing'
                   when r.status > 999 or r.status between 1 and 99 or r.status < -32768
                       then format('status must be an HTTP status, or 0 or less when there was no answer, got %s', r.status)
                   when not (isfinite(r.fetched_at) and r.fetched_at > 'epoch') then 'fetched_at must be a finite time after 1970'
                   when length(r.content_hash) > 1000 then 'content_hash is longer than 1000 characters'
               end,
               r.page_id, null, r.lease_id, r.status, r.fetched_at, r.changed, r.content_hash, null,
               case when isfinite(r.last_modified) then r.last_modified end, case when length(r.etag) <= 1000 then r.etag end,
               null, null, null, null, null, null, null, null)::result
        from unnest(page_ids, lease_ids, statuses, changed, fetched_at, content_hash, etag, last_modified) with ordinality
             as r (page_id, lease_id, status, changed, fetched_at, content_hash, etag, last_modified, ord)));
end $$;
comment on function recrawl_internal.report_pages_at(timestamptz, bigint[], bigint[], int[], boolean[], timestamptz[], text[], text[], timestamptz[]) is
    'report_pages at a given time.';

create or replace function recrawl.report_pages(
    page_ids bigint[], lease_ids bigint[], statuses int[], changed boolean[] default null, fetched_at timestamptz[] default null,
    content_hash text[] default null, etag text[] default null, last_modified timestamptz[] default null
) returns setof recrawl.report_result
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query select * from report_pages_at(clock_timestamp(), page_ids, lease_ids, statuses, changed, fetched_at, content_hash, etag, last_modified);
end $$;
comment on function recrawl.report_pages(bigint[], bigint[], int[], boolean[], timestamptz[], text[], text[], timestamptz[]) is
    'report() with arrays instead of JSON: element n of each is about page n. Says what report says.';
