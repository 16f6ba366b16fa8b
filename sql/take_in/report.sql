-- report: takes in the results of requests, as JSON.

create or replace function report_at(t timestamptz, results jsonb) returns setof recrawl.report_result
language plpgsql volatile as $$
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
            one := checked_alone(results -> i);
            one.ord := i + 1;
            checked := array_append(checked, one);         -- in place, without a copy of the array
        end loop;
    end;
    return query select * from record_results(t, checked);
end $$;

create or replace function recrawl.report(results jsonb) returns setof recrawl.report_result
language plpgsql volatile security definer as $$
begin
    return query select * from report_at(clock_timestamp(), results);
end $$;
comment on function recrawl.report is
'Takes the results of fetches. Returns one row for each result, in the same order. One wrong result does not stop the
others.

* results: a JSON array with one object for each page.

Each object must have one of page_id and url, and one of status, robots_denied and declined. All keys of an object:

* page_id or url: the page.
* lease_id: the lease, from next_pages. Without it the report does not change when the page is fetched next, except
  after status 410 or a permanent redirect, and by the keys due and declined if no crawler has leased the page.
* status: the HTTP status. 0 or a negative number means: there was no answer.
* fetched_at: the time when the request started.
* changed: true if the page changed since the last fetch.
* changes: the number of changes since the last fetch.
* content_hash, sketch: a hash of the page, and eight numbers that stand for its text.
* etag, last_modified: the headers of the answer. A last_modified before 1970 or after 2200 is ignored.
* links: the absolute URLs that the page links to. [] = no links. Without the key the links stay as they were.
* relevance: how well the page fits your subject, from 0 to 1.
* retry_after: the header Retry-After of the answer.
* crawl_delay: from robots.txt, in seconds.
* redirect_to: the absolute URL of the target of a redirect.
* robots_denied: true if robots.txt forbids the page.
* meta: any JSON that you want to store with the page. At most 100 levels deep, with numbers between -1e308 and 1e308.
* due: the time of the next fetch, from 1970 to 2200. With infinity the page is not fetched until you call fetch_now,
  or add_pages with another due.
* declined: true if your crawler will never request the page. Then status must be absent.

docs/report-keys.md explains each key.';
grant execute on function recrawl.report to recrawl_crawler;
