-- checkup: the facts that recrawl reads first, to know whether it can read this database, and the facts that
-- `recrawl doctor` needs in addition to the other views. A column that a query does not select costs nothing.

-- Whether the table of hosts has at most 4 MB. Only then the view checkup reads all hosts. That takes about 2 ms for
-- each column.
create or replace function are_few_hosts() returns boolean
language sql stable
return pg_relation_size('recrawl_internal.host') <= 4000000;

-- The host with the most pages. If there are many hosts: in a sample of 100 blocks of pages. `recrawl doctor` warns of
-- a host with half of all pages. Such a host also has the most pages of a sample, so a sample is enough. The sample is
-- the same each time.
create or replace function largest_host() returns bigint
language plpgsql stable security definer as $$
-- plans: whole
declare
    share constant real := sample_percent('page', 100);
begin
    if are_few_hosts() then
        return (select h.host_id from host h order by h.pages desc limit 1);
    end if;
    return (
        select p.host_id
        from page p tablesample system (share) repeatable (0)
        group by p.host_id
        order by count(*) desc
        limit 1);
end $$;

-- The five blocked hosts with the most pages. If there are many hosts: among the hosts in late_host.
create or replace function largest_blocked_hosts(t timestamptz) returns text[]
language plpgsql stable security definer as $$
-- plans: whole
begin
    if are_few_hosts() then
        return array(select h.name from host h where h.blocked_until > t order by h.pages desc, h.name limit 5);
    end if;
    return array(
        select h.name
        from late_host l
        cross join lateral (select * from host h where h.host_id = l.host_id offset 0) h
        where h.blocked_until > t
        order by h.pages desc, h.name
        limit 5);
end $$;

create or replace view recrawl.checkup as
select (select version_num from alembic_version)::text as version,
       exists (select from page) as has_pages,
       -- is_called stays true if the call of next_pages was rolled back, so the queue is asked too.
       (select is_called from lease_id)
       and exists (select from queue) as has_handed_out,
       -- Without the ids that were skipped after a crash.
       (select (n.last_value - a.newest_page) % ids_skipped()
        from page_id n
        cross join (select newest_page from allocation order by token desc limit 1) a
       ) as added_since_allocation,
       case when are_few_hosts() then (select sum(pages) from host)::bigint
            else (select pages from vitals_state) end as pages,
       (select pages::bigint from host where host_id = (select largest_host())) as most_pages,
       (select name from host where host_id = (select largest_host())) as largest_host,
       case when are_few_hosts()
            then (select count(*) from host where blocked_until > clock_timestamp())
            else (select coalesce(hosts_blocked, 0) from vitals_state) end as blocked_hosts,
       largest_blocked_hosts(clock_timestamp()) as largest_blocked;
select describe_view('recrawl.checkup',
    'One row with facts that the command `recrawl doctor` needs in addition to the other views. If there are very many '
    'hosts (a table of more than 4 MB), some columns are estimates or come from an earlier count.',
    'version', 'The version of the tables.',
    'has_pages', 'True if the crawl has a page, in any state.',
    'has_handed_out', 'True if next_pages has handed out a page, and a page is in the queue.',
    'added_since_allocation', 'The number of pages that were added after the last allocation; null = there was no '
        'allocation, or its newest page is not known.',
    'pages', 'The number of pages. If there are very many hosts, it is the last count by a worker. null = no worker '
        'has counted yet.',
    'most_pages', 'The number of pages of the host that has the most pages. If there are very many hosts, the hosts of '
        'a sample are compared instead of all.',
    'largest_host', 'The host that has the most pages.',
    'blocked_hosts', 'The number of blocked hosts. If there are very many hosts, it is the last count by a worker.',
    'largest_blocked', 'The five blocked hosts that have the most pages. If there are very many hosts: only hosts of '
        'the view late_hosts.');
