-- Pages that are not live: they are handed out no more.

-- Explains a page that is not live.
create or replace function explain_dead(t timestamptz, p page) returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    kept_by text[];
    target  page;
begin
    if p.state = 'excluded' then
        kept_by := array(select e.pattern from exclusion e where canonical_of(p.url) ~ e.pattern order by e.pattern);
        return query
        select 'now', 'excluded',
               case when kept_by = '{}' then 'Excluded, although no excluded pattern matches it now.'
                    when cardinality(kept_by) = 1 then format('Excluded: its URL matches the pattern %s.', kept_by[1])
                    else format('Excluded: its URL matches the patterns %s.', array_to_string(kept_by, ', ')) end,
               case when kept_by = '{}' then
                        format('SELECT recrawl.exclude(%1$L), recrawl.unexclude(%1$L);',
                               pattern_for_one(canonical_of(p.url)))
                    else (select string_agg(format('SELECT recrawl.unexclude(%L);', k), ' ')
                          from unnest(kept_by) as k) end,
               jsonb_build_object(
                   'patterns', kept_by,
                   'excluded_at', (select min(e.excluded_at) from exclusion e where e.pattern = any (kept_by)));
    elsif p.state = 'moved' then
        -- No row if the page that it moved to was deleted.
        select * into target from page q where q.page_id = where_now(p.page_id) and q.page_id <> p.page_id;
        return query
        select 'now', 'moved',
               case when target.page_id is null then 'Moved permanently to a page that was deleted.'
                    else format('Moved permanently to page %s: %s', target.page_id, target.url) end,
               case when target.page_id is null then format('SELECT recrawl.delete_pages(''{%s}'');', p.page_id)
                    else format('SELECT * FROM recrawl.explain_page(%s);', target.page_id) end,
               jsonb_build_object('moved_to', p.moved_to, 'leads_to', target.page_id, 'url', target.url,
                                  'state', target.state);
    elsif p.state = 'gone' then
        return query
        select 'now', 'gone',
               format('Gone: the server answered 410, %s ago. It is never requested again.',
                      in_words(t - p.reported_at)),
               format('SELECT recrawl.delete_pages(''{%s}'');', p.page_id),
               jsonb_build_object('reported_at', p.reported_at);
    else
        return query
        select 'now', 'kept_out',
               'Kept out: it was removed with keep_out.',
               format('SELECT recrawl.delete_pages(''{%s}'');', p.page_id), null::jsonb;
    end if;
    return query select 'also', e.code, e.says, null, e.detail from explain_lease(t, p) e;
end $$;

-- A pattern that matches one canonical URL and no other.
create or replace function pattern_for_one(canonical text) returns text
language sql immutable as $$
    -- The bracket expression begins with «[].[»: in the order «[][.» the characters «[.» would begin the name of a
    -- character.
    select '^' || regexp_replace(canonical, '([].[^$*+?(){}|\\])', '\\\1', 'g') || '$'
$$;
