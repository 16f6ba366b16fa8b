-- report: takes in the results of requests, as JSON.

create or replace function recrawl_internal.report_at(t timestamptz, results jsonb) returns setof recrawl.report_result
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
declare
    checked result[];
    one     result;
begin
    perform check_isolation('report');
    if jsonb_typeof(results) is distinct from 'array' then
        perform refuse(format('report: results must be a JSON array of objects, got %s',
                              coalesce(jsonb_typeof(results), 'null')));
    end if;
    begin
        checked := checked_results(results);
    exception when data_exception or program_limit_exceeded then
        -- An element has a value of the wrong type. The elements are read one by one, so that only that one is refused.
        for i in 0 .. jsonb_array_length(results) - 1 loop
            begin
                one := (checked_results(jsonb_build_array(without_unreadable_hints(results -> i))))[1];
                one.ord := i + 1;
            exception when data_exception or program_limit_exceeded then
                one := jsonb_populate_record(
                    null::result, jsonb_build_object('ord', i + 1, 'problem', problem_of(results -> i)));
            end;
            checked := array_append(checked, one);         -- appends in place; || would copy the whole array
        end loop;
    end;
    return query select * from record_results(t, checked);
end $$;
comment on function recrawl_internal.report_at(timestamptz, jsonb) is 'report at a given time.';

create or replace function recrawl.report(results jsonb) returns setof recrawl.report_result
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query select * from report_at(clock_timestamp(), results);
end $$;
comment on function recrawl.report(jsonb) is
    'Takes in what became of pages handed out; one row per element, in order. An element has page_id or url, '
    'lease_id, status (HTTP; 0 or less = no answer), and what is known of fetched_at, changed or content_hash, '
    'changes (a count), last_modified (ignored before 1970 and after 2200), etag, links (absent = unknown, [] = none), '
    'relevance (0 to 1), sketch, retry_after, crawl_delay (seconds), redirect_to, robots_denied, meta (at most 100 '
    'levels deep, with numbers between -1e308 and 1e308), due (when it is wanted next: 1970 to 2200; infinity = not '
    'until somebody says so), declined (it will not be requested; then without status). Without lease_id it is an '
    'observation, and moves nothing unless it says due or declined of a page that nobody has.';
grant execute on function recrawl.report to recrawl_crawler;
