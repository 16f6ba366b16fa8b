-- The graph of links: packed targets, and what a worker that remembers the graph must learn anew.

create or replace function recrawl_internal.unpacked(targets bytea) returns setof bigint
language sql immutable parallel safe rows 30
begin atomic
    select ('x' || encode(substr(t.whole, 8 * n + 1, 8), 'hex'))::bit(64)::bigint
    from (select targets || '' as whole offset 0) t              -- out of its compressed form once, not for every link
    cross join lateral generate_series(0, length(t.whole) / 8 - 1) n;
end;
comment on function recrawl_internal.unpacked(bytea) is 'The pages in a packed row of links, ascending.';

-- Who writes news holds the table's lock from before this is asked until it commits, even if it writes nothing: a
-- worker that empties the full table, which waits for that lock, has not missed what it reads afterwards.
create or replace function recrawl_internal.is_news_full() returns boolean
language sql volatile
begin atomic
    select pg_relation_size('recrawl_internal.graph_news') >= 64 * 1024 * 1024;
end;
comment on function recrawl_internal.is_news_full() is
    'Whether so much changed since the graph was last read that all of it must be read again.';

create or replace function recrawl_internal.tell_graph(page_ids bigint[]) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited; writes graph_news
begin
    insert into graph_news (page_id) select unnest(page_ids) where not (select is_news_full());
end $$;
comment on function recrawl_internal.tell_graph(bigint[]) is
    'These pages came, left, link elsewhere or have another relevance; null = more than can be told.';
grant execute on function recrawl_internal.unpacked to recrawl_reader;
