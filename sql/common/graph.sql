-- The graph of links: its packed rows, and the news. News are the changed pages that the worker must read again; the
-- worker keeps the graph in memory.

-- The ids of the pages in a packed row of links, ascending.
create or replace function unpacked(targets bytea) returns setof bigint
language sql immutable parallel safe rows 30
begin atomic
    select ('x' || encode(substr(t.whole, 8 * n + 1, 8), 'hex'))::bit(64)::bigint
    from (select targets || '' as whole offset 0) t              -- decompressed once, not for each link
    cross join lateral generate_series(0, length(t.whole) / 8 - 1) n;
end;

-- Whether the table of news is full, so that the next run must read the whole graph again. A transaction that writes
-- news calls this in its INSERT. So it holds a lock on the table graph_news until it commits, even if it writes nothing
-- because the table is full. A worker can empty the full table only while nobody holds such a lock. So the worker,
-- which reads the graph afterwards, sees the changes that were not written down as news.
create or replace function is_news_full() returns boolean
language sql volatile
return pg_relation_size('recrawl_internal.graph_news') >= 64 * 1024 * 1024;

-- Adds pages to the news: they were added, left the graph, or their links or relevance changed. Null instead of a page
-- id = the whole graph must be read again.
create or replace function tell_graph(page_ids bigint[]) returns void
language plpgsql volatile as $$
-- plans: inherited; writes graph_news
begin
    insert into graph_news (page_id) select unnest(page_ids) where not (select is_news_full());
end $$;
