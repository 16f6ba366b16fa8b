-- Reads and checks the elements of report's array. Values that the crawler states itself must be valid. Values that it
-- passes on from a server (etag, last_modified, retry_after, crawl_delay, redirect_to) are ignored if they make no
-- sense.

-- The problem with a result, by the checks that report, report_pages and set_robots share; null if there is no problem.
-- set_robots gives only a status.
create or replace function problem_with(status int, robots_denied boolean, fetched_at timestamptz, content_hash text)
returns text
language sql stable parallel safe      -- stable because format() is; an immutable function would not be inlined
return case
    when status is null and robots_denied is not true then 'status is missing'
    when status > 999 or status between 1 and 99 or status < -32768 then
        format('status must be an HTTP status, or 0 or less when there was no answer, got %s', status)
    when not (isfinite(fetched_at) and fetched_at > 'epoch') then 'fetched_at must be a finite time after 1970'
    when length(content_hash) > 1000 then 'content_hash is longer than 1000 characters'
end;

-- The part of an etag that is compared (RFC 9110, 8.8.3.2): without W/, because a weak and a strong etag name the same
-- version.
create or replace function opaque_tag(etag text) returns text
language sql immutable parallel safe
return case when etag like 'W/%' then substr(etag, 3) else etag end;

-- The time from now that a Retry-After header asks for; null if the header cannot be read. The header is a number of
-- seconds or a date in one of three forms. The oldest form (asctime) does not name its zone: it is GMT.
create or replace function wait_asked_for(retry_after text, t timestamptz) returns interval
language plpgsql stable set timezone = 'UTC' set datestyle = 'ISO, MDY' as $$
begin
    if retry_after ~ '^ *[0-9]{1,99}([.][0-9]+)? *$' then
        return least(retry_after::float8, 1e6) * interval '1 second';
    end if;
    -- PostgreSQL can read 06-Nov-94, but not with the name of a day before it.
    return in_seconds(regexp_replace(retry_after, '^ *[A-Za-z]+, *', '')::timestamptz - t);
exception when data_exception then
    return null;
end $$;

-- The problem with a result; null if there is no problem.
create or replace function problem_with_result(r result) returns text
language sql stable parallel safe
return coalesce(
    r.problem,
    case when (r.extras).declined
              and (r.status is not null or (r.extras).robots_denied or (r.extras).due is not null)
         then 'declined says that no request was made: without status, robots_denied and due' end,
    problem_with(r.status, (r.extras).robots_denied or (r.extras).declined, r.fetched_at, r.content_hash),
    case when r.changes < 0 then 'changes must not be negative, got ' || r.changes end,
    case when not (r.extras is null) then coalesce(
        problem_with_due((r.extras).due),
        problem_with_meta((r.extras).meta),
        case when not (r.extras).relevance between 0 and 1 then
            'relevance must lie between 0 and 1, got ' || (r.extras).relevance end,
        case when array_ndims((r.extras).sketch) > 1 or cardinality((r.extras).sketch) <> sketch_values()
                  or array_position((r.extras).sketch, null) is not null
             then 'sketch must have ' || sketch_values() || ' numbers' end,
        case when array_ndims((r.extras).links) > 1 then
            'links must be one list of URLs, without lists in it' end) end);

-- Checked values of the keys that most results do not have; null if a result lacks all of them. After a permanent
-- redirect (301, 308) the page has moved to the target. The target of a temporary redirect counts as a link.
create or replace function checked_extras(e result_extras, status int) returns result_extras
language sql stable parallel safe
return case when not (e is null) then
    (e.url,
     case when e.redirect_to is not null and status in (302, 303, 307)
          then coalesce(e.links[:], '{}') || e.redirect_to
          else e.links[:] end,      -- [:] makes the subscripts start at 1
     case when e.relevance between least_amount() and 1 then e.relevance
          when e.relevance is not null then 0 end,
     e.sketch[:], e.meta, e.due, e.declined, e.robots_denied,
     case when status in (301, 308) then e.redirect_to end,
     e.retry_after, e.crawl_delay)::result_extras end;

-- A result with its problem, and without an etag or last_modified that makes no sense. The function is inlined, so it
-- has no search_path of its own. It is not inlined if an argument that it uses twice contains a query (PostgreSQL 15
-- and 18).
create or replace function checked(r result) returns result
language sql stable parallel safe
return (r.ord, problem_with_result(r), r.page_id, r.lease_id, r.status, r.fetched_at, r.changed,
        r.changes, case when length(r.etag) between 1 and 1000 then r.etag end,
        case when within_reach(r.last_modified) then r.last_modified end, r.content_hash,
        checked_extras(r.extras, r.status))::result;

-- The keys that an element of the array of report may have.
create or replace function result_keys() returns text[]
language plpgsql stable as $$
begin
    return array(
        select jsonb_object_keys(to_jsonb(jsonb_populate_record(null::result, '{}')) - '{ord,problem,extras}'::text[])
        union all
        select jsonb_object_keys(to_jsonb(jsonb_populate_record(null::result_extras, '{}'))));
end $$;

-- Turns the elements of report's array into checked results. Raises if a value has the wrong type: data_exception, or
-- program_limit_exceeded for an array of more than six dimensions. A time without a zone is UTC.
create or replace function checked_results(elements jsonb) returns result[]
language plpgsql stable set timezone = 'UTC' set datestyle = 'ISO, MDY' as $$
-- plans: lookups
declare
    known_keys constant text[] := result_keys();
begin
    return (
        select array_agg(checked((
            a.ord::int, e.problem, e.page_id, (e.r).lease_id, (e.r).status, (e.r).fetched_at, (e.r).changed,
            (e.r).changes, (e.r).etag, (e.r).last_modified, (e.r).content_hash, e.extras)::result) order by a.ord)
        from jsonb_array_elements(elements) with ordinality as a (element, ord)
        -- A separate join, see checked().
        cross join lateral (
            select e.r, e.extras,
                   case when (e.r).page_id is not null then (e.r).page_id
                        when (e.extras).url is not null then
                            (select p.page_id from page p where p.key = url_key((parse_url((e.extras).url)).canonical))
                   end as page_id,
                   case when e.unknown <> '{}' then
                            format('unknown key "%s"', (select left(min(k), 100) from jsonb_object_keys(e.unknown) k))
                        when (e.r).page_id is null and (e.extras).url is null then 'page_id or url is missing'
                   end as problem
            from (select jsonb_populate_record(null::result, a.element) as r,
                         jsonb_populate_record(null::result_extras, a.element) as extras,
                         a.element - known_keys as unknown
                  offset 0) e
            offset 0
        ) e);
end $$;

-- Checks one element of report's array, for a call in which checked_results() raised. If the element cannot be read,
-- its keys are read one by one. A last_modified or crawl_delay that cannot be read is ignored. Any other value that
-- cannot be read is the problem.
create or replace function checked_alone(element jsonb) returns result
language plpgsql stable as $$
declare
    given  record;
    answer result;
begin
    if jsonb_typeof(element) is distinct from 'object' then
        answer.problem := format('an element must be an object, got %s', coalesce(jsonb_typeof(element), 'null'));
        return answer;
    end if;
    return (checked_results(jsonb_build_array(element)))[1];
exception when data_exception or program_limit_exceeded then
    for given in
        select key, value, key in ('last_modified', 'crawl_delay') as is_hint from jsonb_each(element)
        order by is_hint desc, key
    loop
        begin
            perform checked_results(jsonb_build_array(jsonb_build_object(given.key, given.value)));
        exception when data_exception or program_limit_exceeded then
            if given.is_hint then
                return checked_alone(element - given.key);
            end if;
            answer.problem := case when given.key = any (result_keys())
                                   then format('%s: %s', given.key, left(sqlerrm, 200))
                                   else format('unknown key "%s"', left(given.key, 100)) end;
            return answer;
        end;
    end loop;
    answer.problem := 'it cannot be read';
    return answer;
end $$;
