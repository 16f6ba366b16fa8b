-- Taking the elements of report's array apart.

-- The elements of report's array, checked; raises when a value is not of its type. What the crawler says itself must be right; what a
-- server said and it passed on (etag, last_modified, retry_after, crawl_delay, redirect_to) is ignored where it makes no sense.
create or replace function recrawl_internal.checked_results(elements jsonb, t timestamptz) returns recrawl_internal.result[]
language plpgsql stable
set search_path = recrawl_internal, pg_temp
set jit = off
as $$
begin
    return (
        select array_agg((
            ord,
            case
                when unknown <> '{}' then format('unknown key "%s"', (select left(min(k), 100) from jsonb_object_keys(unknown) k))
                when e.page_id is null and e.url is null then 'page_id or url is missing'
                when e.status is null and e.robots_denied is not true then 'status is missing'
                when e.status > 999 or e.status between 1 and 99 or e.status < -32768
                    then format('status must be an HTTP status, or 0 or less when there was no answer, got %s', e.status)
                when not (isfinite(e.fetched_at) and e.fetched_at > 'epoch') then 'fetched_at must be a finite time after 1970'
                when e.changes < 0 then format('changes must not be negative, got %s', e.changes)
                when not e.relevance between 0 and 1 then format('relevance must lie between 0 and 1, got %s', e.relevance)
                when e.sketch is not null and ((select count(v) from unnest(e.sketch) v) <> 8 or array_ndims(e.sketch) <> 1) then 'sketch must have 8 numbers'
                when length(e.content_hash) > 1000 then 'content_hash is longer than 1000 characters'
            end,
            case when e.page_id is not null then e.page_id
                 when e.url is not null then (select p.page_id from page p where p.key = url_key((parse_url(e.url)).canonical)) end,
            e.url, e.lease_id, e.status, e.fetched_at, e.changed, e.content_hash, e.changes,
            case when isfinite(e.last_modified) then e.last_modified end, case when length(e.etag) <= 1000 then e.etag end, e.links,
            -- The header's own two forms: seconds or a date.
            case when e.retry_after ~ '^ *[0-9]{1,99}([.][0-9]+)? *$' then least(e.retry_after::float8, 1e6) * interval '1 second'
                 when e.retry_after is not null then e.retry_after::timestamptz - t end,
            case when e.crawl_delay between 0 and 1e9 then e.crawl_delay * interval '1 second' end,
            e.redirect_to, e.robots_denied, e.meta,
            case when e.relevance between 1e-30 and 1 then e.relevance::real when e.relevance is not null then 0 end,
            case when e.sketch is not null then array(select unnest(e.sketch)) end      -- with subscripts from 1
        )::result order by ord)
        from jsonb_array_elements(elements) with ordinality as a (element, ord)
        cross join lateral jsonb_populate_record(null::result_element, element) as e
        cross join lateral (select element - '{page_id,url,lease_id,status,fetched_at,changed,content_hash,changes,last_modified,etag,links,retry_after,crawl_delay,redirect_to,robots_denied,meta,relevance,sketch}'::text[]) as u (unknown));
end $$;
comment on function recrawl_internal.checked_results(jsonb, timestamptz) is 'The elements of report''s array as checked results.';

create or replace function recrawl_internal.without_nonsense(element jsonb, t timestamptz) returns jsonb
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
declare
    hint text;
begin
    foreach hint in array '{last_modified,retry_after,crawl_delay}'::text[] loop
        begin
            perform checked_results(jsonb_build_array(jsonb_build_object(hint, element -> hint)), t);
        exception when data_exception then
            element := element - hint;
        end;
    end loop;
    return element;
end $$;
comment on function recrawl_internal.without_nonsense(jsonb, timestamptz) is 'An element of report''s array without what a server said and nobody can read.';

create or replace function recrawl_internal.problem_of(element jsonb) returns text
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
declare
    given record;
begin
    if jsonb_typeof(element) is distinct from 'object' then
        return format('an element must be an object, got %s', coalesce(jsonb_typeof(element), 'null'));
    end if;
    for given in select key, value from jsonb_each(element) loop
        perform jsonb_populate_record(null::result_element, jsonb_build_object(given.key, given.value));
    end loop;
    return 'it cannot be read';
exception when data_exception then
    return format('%s: %s', given.key, left(sqlerrm, 200));
end $$;
comment on function recrawl_internal.problem_of(jsonb) is 'Which key of an element of report''s array has a value of the wrong type.';
