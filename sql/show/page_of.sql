-- page_of: finds the page of a URL in any spelling, with one look-up in the index of keys.

create or replace function recrawl.page_of(url text) returns bigint
language sql stable security definer as $$
-- plans: lookups
    select p.page_id from page p where p.key = url_key(canonical_of(page_of.url))
$$;
comment on function recrawl.page_of is
    'Returns the page_id of a URL in any spelling; null = the URL is not in the crawl. A query with `where page_id = '
    'page_of(…)` is fast for any number of pages, because it uses an index.';
grant execute on function recrawl.page_of to recrawl_reader;
