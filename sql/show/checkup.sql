-- What recrawl looks at first, to know whether it can read this database at all, and what doctor asks beside the other
-- views. Each column is found out only where it is asked for; those of hosts read all of them.

create or replace view recrawl.checkup as
select (select version_num from recrawl_internal.alembic_version)::text as version,
       exists (select from recrawl_internal.page) as has_pages,
       (select is_called from recrawl_internal.lease_id) -- also by what was rolled back, as the demo
       and exists (select from recrawl_internal.queue) as has_handed_out,
       (select last_value from recrawl_internal.page_id) as newest_page,
       (select newest_page from recrawl_internal.allocation order by token desc limit 1) as newest_allocated,
       (select sum(pages) from recrawl_internal.host)::bigint as pages,
       (select max(pages) from recrawl_internal.host)::bigint as most_pages,
       (select name from recrawl_internal.host order by pages desc limit 1) as largest_host,
       (select count(*) from recrawl_internal.host where blocked_until > clock_timestamp()) as blocked_hosts,
       array(select name from recrawl_internal.host where blocked_until > clock_timestamp()
             order by pages desc, name limit 5) as largest_blocked;
comment on view recrawl.checkup is 'One row: what `recrawl doctor` looks at beside the other views.';
comment on column recrawl.checkup.version is 'Of the tables.';
comment on column recrawl.checkup.has_pages is 'Whether any URL was ever taken in.';
comment on column recrawl.checkup.has_handed_out is 'Whether any page was ever handed out.';
comment on column recrawl.checkup.newest_page is 'The last page_id that was given.';
comment on column recrawl.checkup.newest_allocated is
    'The last page_id that there was at the last allocation; null = it is not known, or there was none.';
comment on column recrawl.checkup.pages is 'Pages taken in.';
comment on column recrawl.checkup.most_pages is 'Pages taken in of the host that has most.';
comment on column recrawl.checkup.largest_host is 'That host.';
comment on column recrawl.checkup.blocked_hosts is 'Hosts that are blocked.';
comment on column recrawl.checkup.largest_blocked is 'Those five of them that have most pages.';
grant select on recrawl.checkup to recrawl_reader;
