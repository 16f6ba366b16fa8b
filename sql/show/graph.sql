-- The graph for people. Links are stored with the page that has them. The pages that link to a given page are found by
-- reading all links: .35 s for a million pages with ten million links (PostgreSQL 18). An index would make this faster,
-- but it would cost each report more than it is worth.

create or replace view recrawl.graph_node as
select p.page_id, p.url,
       length(l.targets) / 8 as out_links,
       c.in_links::bigint as in_links,
       c.hub, c.authority, c.importance,
       coalesce(p.pinned_relevance, p.relevance) as relevance
from page p
left join link l using (page_id)
left join page_score c using (page_id)
where p.state = 'live';
select describe_view('recrawl.graph_node',
    'One row for each page in the crawl, with its links and scores. in_links and the scores come from the last run of '
    'the job opic.',
    'out_links', 'The number of pages that it links to. Pages that left the crawl count too. null = no report named '
        'its links.',
    'in_links', 'The number of pages that link to it; null = the job opic has not scored it yet.',
    'relevance', 'How well it fits your subject, 0 to 1; null = unknown.');

create or replace view recrawl.graph_link as
select l.page_id as source_id, t.target_id
from link l
join page s on s.page_id = l.page_id and s.state = 'live'
cross join lateral unpacked(l.targets) as t (target_id)
join page p on p.page_id = t.target_id and p.state = 'live';
select describe_view('recrawl.graph_link',
    'One row for each link between two pages in the crawl. Two links between the same pages are one row.',
    'source_id', 'The page that has the link.',
    'target_id', 'The page that the link leads to.');

create or replace function recrawl.successors(page_id bigint) returns setof recrawl.scored_page
language sql stable security definer as $$
-- plans: lookups
    select g.page_id, g.url, g.hub, g.authority, g.relevance
    from recrawl.graph_node g
    where g.page_id = any (array(
              select unpacked(l.targets)
              from link l join page p on p.page_id = l.page_id and p.state = 'live'
              where l.page_id = successors.page_id))
    order by g.page_id
$$;
comment on function recrawl.successors is 'Returns the pages that a page links to, in the order of page_id.';

create or replace function recrawl.predecessors(page_id bigint) returns setof recrawl.scored_page
language sql stable security definer as $$
-- plans: whole
    -- The eight bytes of an id may also occur across two neighbouring ids. Therefore each hit is checked again.
    select g.page_id, g.url, g.hub, g.authority, g.relevance
    from recrawl.graph_node g
    where g.page_id = any (array(
              select l.page_id from link l
              where position(int8send(predecessors.page_id) in l.targets) > 0
                and predecessors.page_id in (select unpacked(l.targets))))
      and exists (select from page p where p.page_id = predecessors.page_id and p.state = 'live')
    order by g.page_id
$$;
comment on function recrawl.predecessors is
    'Returns the pages that link to a page, in the order of page_id. It reads all links, which takes some seconds '
    'for ten million pages.';

create or replace function recrawl.top_hubs(n int default 100) returns setof recrawl.scored_page
language sql stable security definer as $$
-- plans: whole
    select refuse(format('top_hubs: n must be positive, got %s', n)) where n <= 0;
    select page_id, url, hub, authority, relevance from recrawl.graph_node
    where hub is not null
    order by hub desc, page_id limit n
$$;
comment on function recrawl.top_hubs is
    'Returns the n pages with the highest hub scores of the last run of the job opic, the highest first. It reads '
    'all scores.';

create or replace function recrawl.top_authorities(n int default 100) returns setof recrawl.scored_page
language sql stable security definer as $$
-- plans: whole
    select refuse(format('top_authorities: n must be positive, got %s', n)) where n <= 0;
    select page_id, url, hub, authority, relevance from recrawl.graph_node
    where authority is not null
    order by authority desc, page_id limit n
$$;
comment on function recrawl.top_authorities is
    'Returns the n pages with the highest authority scores of the last run of the job opic, the highest first. It '
    'reads all scores.';

create or replace function recrawl.top_relevant(n int default 100) returns setof recrawl.scored_page
language sql stable security definer as $$
-- plans: whole
    select refuse(format('top_relevant: n must be positive, got %s', n)) where n <= 0;
    select page_id, url, hub, authority, relevance from recrawl.graph_node
    where relevance is not null
    order by relevance desc, page_id limit n
$$;
comment on function recrawl.top_relevant is
    'Returns the n pages with the highest relevance, the highest first. Pages of unknown relevance are left out. It '
    'reads all pages.';
grant execute on function
    recrawl.successors, recrawl.predecessors, recrawl.top_hubs, recrawl.top_authorities, recrawl.top_relevant
to recrawl_reader;
