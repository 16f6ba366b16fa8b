-- blocked_pages: the leased pages, and the hosts with slots of take_slot, that were blocked after they were handed out.
-- A crawler that looks ahead has such pages when a host answers 429, or when an operator blocks the host.

create or replace function blocked_pages_at(t timestamptz, lease_ids bigint[], hosts text[] default null)
returns setof recrawl.blocked_page
language sql stable as $$
-- plans: lookups
    select l.lease_id, l.page_id, h.name, readable(h.blocked_until)
    from (select l.lease_id, unnest(l.page_ids) as page_id
          from (select distinct unnest(lease_ids) as lease_id) i
          cross join lateral (
              select * from lease where lease.lease_id = i.lease_id offset 0   -- one index lookup for each lease
          ) l
          where l.lease_until > t) l
    cross join lateral (
        select p.host_id from page p
        where p.page_id = l.page_id and coalesce(p.last_lease, 0) < l.lease_id
        offset 0
    ) p
    cross join lateral (
        select h.name, h.blocked_until from host h where h.host_id = p.host_id and h.blocked_until > t offset 0
    ) h
    union all
    select null, null, n.host, readable(h.blocked_until)
    from (select distinct unnest(hosts) as host) n
    cross join lateral (select host_id_of('blocked_pages', n.host) as host_id offset 0) i
    cross join lateral (
        select h.blocked_until from host h where h.host_id = i.host_id and h.blocked_until > t offset 0
    ) h
$$;

create or replace function recrawl.blocked_pages(lease_ids bigint[], hosts text[] default null)
returns setof recrawl.blocked_page
language sql volatile security definer as $$
    select * from blocked_pages_at(clock_timestamp(), lease_ids, hosts)
$$;
comment on function recrawl.blocked_pages is
'Returns the pages that you have leased and whose hosts are blocked. Call it once a second.

* lease_ids: your leases. Pages that you reported or released are left out.
* hosts: hosts for which you have a slot of take_slot. A row without a page says that the host is blocked.

A host is blocked after 429, 503 or many failures, or by block_host. Do not request these pages: release them.';
grant execute on function recrawl.blocked_pages to recrawl_crawler;
