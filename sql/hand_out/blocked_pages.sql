-- The leased pages whose hosts were blocked after next_pages, and the hosts that were blocked after take_slot. A
-- crawler that looks ahead has such pages or slots when a host answers 429, or when an operator blocks the host.

create or replace function blocked_pages_at(t timestamptz, lease_ids bigint[]) returns setof recrawl.blocked_page
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
$$;

create or replace function recrawl.blocked_pages(lease_ids bigint[]) returns setof recrawl.blocked_page
language sql volatile security definer as $$
    select * from blocked_pages_at(clock_timestamp(), lease_ids)
$$;
comment on function recrawl.blocked_pages is
'Returns the pages that you have leased and whose hosts are blocked. Call it once a second.

* lease_ids: your leases. Pages that you reported or released are left out.

A host is blocked after 429, 503 or many failures, or by block_host. Do not request these pages: release them.';
grant execute on function recrawl.blocked_pages to recrawl_crawler;

create or replace function blocked_hosts_at(t timestamptz, hosts text[]) returns setof text
language sql stable as $$
-- plans: lookups
    select n.host
    from (select distinct unnest(hosts) as host) n
    cross join lateral (select host_id_of('blocked_hosts', n.host) as host_id offset 0) i
    where exists (select from host h where h.host_id = i.host_id and h.blocked_until > t)
$$;

create or replace function recrawl.blocked_hosts(hosts text[]) returns setof text
language sql volatile security definer as $$
    select * from blocked_hosts_at(clock_timestamp(), hosts)
$$;
comment on function recrawl.blocked_hosts is
'Returns the hosts of the array that are blocked. Call it once a second while you have slots of take_slot, and make no
request to these hosts.

* hosts: names or addresses, without port.';
grant execute on function recrawl.blocked_hosts to recrawl_crawler;
