-- Reads and checks the elements of report's array. Values that the crawler states itself must be valid. Values that it
-- passes on from a server (etag, last_modified, retry_after, crawl_delay, redirect_to) are ignored if they make no
-- sense.

-- The checks that report and report_pages share.
create or replace function recrawl_internal.problem_with(
    status int, robots_denied boolean, fetched_at timestamptz, content_hash text
) returns text
language sql stable parallel safe      -- stable because format() is; an immutable function would not be inlined
begin atomic
    select case
        when status is null and robots_denied is not true then 'status is missing'
        when status > 999 or status between 1 and 99 or status < -32768 then
            format('status must be an HTTP status, or 0 or less when there was no answer, got %s', status)
        when not (isfinite(fetched_at) and fetched_at > 'epoch') then 'fetched_at must be a finite time after 1970'
        when length(content_hash) > 1000 then 'content_hash is longer than 1000 characters'
    end;
end;
comment on function recrawl_internal.problem_with(int, boolean, timestamptz, text) is
    'The problem with a result; null if there is no problem.';

create or replace function recrawl_internal.usable_etag(etag text) returns text
language sql immutable parallel safe
begin atomic
    select case when length(etag) between 1 and 1000 then etag end;
end;
comment on function recrawl_internal.usable_etag(text) is 'The etag if it has 1 to 1000 characters, otherwise null.';

create or replace function recrawl_internal.opaque_tag(etag text) returns text
language sql immutable parallel safe
begin atomic
    select case when etag like 'W/%' then substr(etag, 3) else etag end;
end;
comment on function recrawl_internal.opaque_tag(text) is
    'The part of an etag that is compared (RFC 9110, 8.8.3.2): without W/, because a weak and a strong etag name the '
    'same version.';

create or replace function recrawl_internal.problem_with_sketch(sketch int[]) returns text
language sql stable parallel safe      -- stable because || with a number is; otherwise it would not be inlined
begin atomic
    select case when array_ndims(sketch) > 1 or cardinality(sketch) <> recrawl_internal.sketch_values()
                     or array_position(sketch, null) is not null
                then 'sketch must have ' || recrawl_internal.sketch_values() || ' numbers' end;
end;
comment on function recrawl_internal.problem_with_sketch(int[]) is
    'The problem with a sketch; null if there is no problem.';

-- The header is a number of seconds or a date in one of three forms. The oldest form (asctime) does not name its zone:
-- it is GMT.
create or replace function recrawl_internal.wait_asked_for(retry_after text, t timestamptz) returns interval
language plpgsql stable
set search_path = recrawl_internal, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, MDY'
as $$
begin
    if retry_after ~ '^ *[0-9]{1,99}([.][0-9]+)? *$' then
        return least(retry_after::float8, 1e6) * interval '1 second';
    end if;
    -- PostgreSQL can read 06-Nov-94, but not with the name of a day before it.
    return in_seconds(regexp_replace(retry_after, '^ *[A-Za-z]+, *', '')::timestamptz - t);
exception when data_exception then
    return null;
end $$;
comment on function recrawl_internal.wait_asked_for(text, timestamptz) is
    'The time from now that a Retry-After header asks for; null if the header cannot be read.';

-- After a permanent redirect (301, 308) the page has moved to the target. The target of a temporary redirect counts as
-- a link.
--
-- The function is inlined, so it has no search_path of its own and each name has its schema.
create or replace function recrawl_internal.checked(
    e recrawl_internal.result_element, ord int, page_id bigint, problem text, t timestamptz
) returns recrawl_internal.result
language sql stable parallel safe
begin atomic
    select row(
        ord,
        coalesce(
            problem,
            case when e.declined and (e.status is not null or e.robots_denied or e.due is not null)
                 then 'declined says that no request was made: without status, robots_denied and due' end,
            recrawl_internal.problem_with(e.status, e.robots_denied or e.declined, e.fetched_at, e.content_hash),
            recrawl_internal.problem_with_due(e.due),
            recrawl_internal.problem_with_meta(e.meta),
            case when e.changes < 0 then 'changes must not be negative, got ' || e.changes end,
            case when not e.relevance between 0 and 1 then
                'relevance must lie between 0 and 1, got ' || e.relevance end,
            recrawl_internal.problem_with_sketch(e.sketch),
            case when array_ndims(e.links) > 1 then 'links must be one list of URLs, without lists in it' end),
        page_id,
        e.url,
        e.lease_id,
        e.status,
        e.fetched_at,
        e.changed,
        e.content_hash,
        e.changes,
        case when recrawl_internal.within_reach(e.last_modified) then e.last_modified end,
        recrawl_internal.usable_etag(e.etag),
        case when e.redirect_to is not null and e.status in (302, 303, 307)
             then coalesce(e.links[:], '{}') || e.redirect_to
             else e.links[:] end,      -- [:] makes the subscripts start at 1
        case when e.retry_after is not null then recrawl_internal.wait_asked_for(e.retry_after, t) end,
        case when e.crawl_delay between 0 and 1e9 then e.crawl_delay * interval '1 second' end,
        case when e.status in (301, 308) then e.redirect_to end,
        e.robots_denied,
        e.meta,
        case when e.relevance between recrawl_internal.least_amount() and 1 then e.relevance::real
             when e.relevance is not null then 0 end,
        e.sketch[:],
        case when e.declined then recrawl_internal.never(page_id)
             when e.due is not null then recrawl_internal.due_of_its_own(e.due, page_id) end,
        case when e.declined then 'declined' when e.due = 'infinity' then 'done' when e.due is not null then 'set' end
    )::recrawl_internal.result;
end;
comment on function recrawl_internal.checked(
    recrawl_internal.result_element, int, bigint, text, timestamptz
) is
    'Turns an element of the array into a checked result.';

-- Raises if a value has the wrong type: data_exception, or program_limit_exceeded for an array of more than six
-- dimensions. A time without a zone is UTC.
create or replace function recrawl_internal.checked_results(elements jsonb, t timestamptz)
returns recrawl_internal.result[]
language plpgsql stable
set search_path = recrawl_internal, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, MDY'
as $$
-- plans: lookups
declare
    known_keys constant text[] := array(
        select jsonb_object_keys(to_jsonb(jsonb_populate_record(null::result_element, '{}'))));
begin
    return (
        select array_agg(checked(
            e, a.ord::int, known.page_id,
            case
                when unknown <> '{}' then
                    format('unknown key "%s"', (select left(min(k), 100) from jsonb_object_keys(unknown) k))
                when e.page_id is null and e.url is null then 'page_id or url is missing'
            end,
            t) order by a.ord)
        from jsonb_array_elements(elements) with ordinality as a (element, ord)
        cross join lateral jsonb_populate_record(null::result_element, element) as e
        cross join lateral (select element - known_keys) as u (unknown)
        -- A separate join: checked() is not inlined if an argument that it uses twice contains a query (PostgreSQL 15
        -- and 18).
        cross join lateral (
            select case
                       when e.page_id is not null then e.page_id
                       when e.url is not null then
                           (select p.page_id from page p where p.key = url_key((parse_url(e.url)).canonical))
                   end as page_id
            offset 0
        ) known);
end $$;
comment on function recrawl_internal.checked_results(jsonb, timestamptz) is
    'Turns the elements of report''s array into checked results.';

create or replace function recrawl_internal.without_unreadable_hints(element jsonb, t timestamptz) returns jsonb
language plpgsql stable
set search_path = recrawl_internal, pg_temp
as $$
declare
    hint text;
begin
    foreach hint in array '{last_modified,crawl_delay}'::text[] loop
        begin
            perform checked_results(jsonb_build_array(jsonb_build_object(hint, element -> hint)), t);
        exception when data_exception then
            element := element - hint;
        end;
    end loop;
    return element;
end $$;
comment on function recrawl_internal.without_unreadable_hints(jsonb, timestamptz) is
    'An element of report''s array without last_modified or crawl_delay if that value cannot be read.';

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
exception when data_exception or program_limit_exceeded then
    return format('%s: %s', given.key, left(sqlerrm, 200));
end $$;
comment on function recrawl_internal.problem_of(jsonb) is
    'Explains why an element of report''s array cannot be read: names the key whose value has the wrong type.';
