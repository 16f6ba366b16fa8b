-- Taking the elements of report's array apart. What the crawler says itself must be right; what a server said and it
-- passed on (etag, last_modified, retry_after, crawl_delay, redirect_to) is ignored where it makes no sense.

-- What report and report_pages both refuse.
create or replace function recrawl_internal.problem_with(
    status int, robots_denied boolean, fetched_at timestamptz, content_hash text
) returns text
language sql stable parallel safe      -- as format() is: else it would not be inlined
as $$
    select case
        when status is null and robots_denied is not true then 'status is missing'
        when status > 999 or status between 1 and 99 or status < -32768 then
            format('status must be an HTTP status, or 0 or less when there was no answer, got %s', status)
        when not (isfinite(fetched_at) and fetched_at > 'epoch') then 'fetched_at must be a finite time after 1970'
        when length(content_hash) > 1000 then 'content_hash is longer than 1000 characters'
    end
$$;
comment on function recrawl_internal.problem_with(int, boolean, timestamptz, text) is
    'What is wrong with a result; null = nothing.';

create or replace function recrawl_internal.usable_etag(etag text) returns text
language sql immutable parallel safe
as $$
    select case when length(etag) <= 1000 then etag end
$$;
comment on function recrawl_internal.usable_etag(text) is 'An etag that a server may have meant; of others nothing.';

-- Raises when a value is not of its type.
create or replace function recrawl_internal.checked_results(elements jsonb, t timestamptz)
returns recrawl_internal.result[]
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
declare
    known_keys constant text[] := array(
        select jsonb_object_keys(to_jsonb(jsonb_populate_record(null::result_element, '{}'))));
begin
    return (
        select array_agg(r::result order by r.ord)
        from (
            select
                ord::int as ord,
                case
                    when unknown <> '{}' then
                        format('unknown key "%s"', (select left(min(k), 100) from jsonb_object_keys(unknown) k))
                    when e.page_id is null and e.url is null then 'page_id or url is missing'
                    when p.problem is not null then p.problem
                    when e.changes < 0 then format('changes must not be negative, got %s', e.changes)
                    when not e.relevance between 0 and 1 then
                        format('relevance must lie between 0 and 1, got %s', e.relevance)
                    when e.sketch is not null
                         and ((select count(v) from unnest(e.sketch) v) <> sketch_values()
                              or array_ndims(e.sketch) <> 1) then
                        format('sketch must have %s numbers', sketch_values())
                end as problem,
                case
                    when e.page_id is not null then e.page_id
                    when e.url is not null then
                        (select p.page_id from page p where p.key = url_key((parse_url(e.url)).canonical))
                end as page_id,
                e.url as url,
                e.lease_id as lease_id,
                e.status as status,
                e.fetched_at as fetched_at,
                e.changed as changed,
                e.content_hash as content_hash,
                e.changes as changes,
                case when isfinite(e.last_modified) then e.last_modified end as last_modified,
                usable_etag(e.etag) as etag,
                e.links as links,
                case               -- the header's own two forms: seconds or a date
                    when e.retry_after ~ '^ *[0-9]{1,99}([.][0-9]+)? *$' then
                        least(e.retry_after::float8, 1e6) * interval '1 second'
                    when e.retry_after is not null then e.retry_after::timestamptz - t
                end as retry_after,
                case when e.crawl_delay between 0 and 1e9 then e.crawl_delay * interval '1 second' end as crawl_delay,
                e.redirect_to as redirect_to,
                e.robots_denied as robots_denied,
                e.meta as meta,
                case when e.relevance between least_amount() and 1 then e.relevance::real
                     when e.relevance is not null then 0 end as relevance,
                case when e.sketch is not null then array(select unnest(e.sketch)) end as sketch   -- subscripts from 1
            from jsonb_array_elements(elements) with ordinality as a (element, ord)
            cross join lateral jsonb_populate_record(null::result_element, element) as e
            cross join lateral (select element - known_keys) as u (unknown)
            cross join lateral (
                select problem_with(e.status, e.robots_denied, e.fetched_at, e.content_hash) as problem
            ) p
        ) r);
end $$;
comment on function recrawl_internal.checked_results(jsonb, timestamptz) is
    'The elements of report''s array as checked results.';

create or replace function recrawl_internal.without_unreadable_hints(element jsonb, t timestamptz) returns jsonb
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
comment on function recrawl_internal.without_unreadable_hints(jsonb, timestamptz) is
    'An element of report''s array without what a server said and nobody can read.';

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
comment on function recrawl_internal.problem_of(jsonb) is
    'Which key of an element of report''s array has a value of the wrong type.';
