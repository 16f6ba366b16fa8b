-- leases_of: the running leases of pages. For crawlers that lost the answer of next_pages, and for the URLFrontier
-- service, whose crawlers do not know the ids of leases.

create or replace function leases_of_at(t timestamptz, page_ids bigint[]) returns setof recrawl.leased_page
language sql stable as $$
-- plans: lookups
    select i.page_id, i.lease_id, i.lease_until
    from (select l.lease_id, l.lease_until, unnest(l.page_ids) as page_id from lease l where l.lease_until > t) i
    cross join lateral (select p.last_lease from page p where p.page_id = i.page_id offset 0) p
    where (leases_of_at.page_ids is null or (i.page_id in (select unnest(leases_of_at.page_ids))) is true)
      and coalesce(p.last_lease, 0) < i.lease_id
$$;

create or replace function recrawl.leases_of(page_ids bigint[] default null) returns setof recrawl.leased_page
language sql volatile security definer as $$
    select * from leases_of_at(clock_timestamp(), page_ids)
$$;
comment on function recrawl.leases_of is
'Returns one row for each page that a crawler has, with its lease. A page that no crawler has is left out.

* page_ids: the pages. null = all pages.

A caller that lost the answer of next_pages finds its leases here. The function reads all leases.';
grant execute on function recrawl.leases_of to recrawl_crawler, recrawl_reader;
