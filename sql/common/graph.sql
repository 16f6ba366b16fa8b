-- Reads the links of a page, which found_links.sql packs into one value.

-- The ids of the pages in a packed row of links, ascending.
create or replace function unpacked(targets bytea) returns setof bigint
language sql immutable parallel safe rows 30
begin atomic
    select ('x' || encode(substr(t.whole, 8 * n + 1, 8), 'hex'))::bit(64)::bigint
    from (select targets || '' as whole offset 0) t              -- decompressed once, not for each link
    cross join lateral generate_series(0, length(t.whole) / 8 - 1) n;
end;
