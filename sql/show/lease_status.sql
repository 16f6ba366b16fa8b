-- lease_status: the leases that hold pages.

create or replace view recrawl.lease_status as
select l.lease_id,
       min(l.handed_out_at) as handed_out_at,
       max(l.lease_until) as lease_until,
       sum(cardinality(l.page_ids))::int as pages,
       sum(l.unreported)::int as unreported
from lease l
group by l.lease_id;
comment on view recrawl.lease_status is
    'One row for each lease: a call of next_pages whose pages are not all reported yet. When the lease ends, other '
    'crawlers get its unreported pages.';
select copy_comments('recrawl.lease_status');
comment on column recrawl.lease_status.lease_until is 'The end of the lease.';
comment on column recrawl.lease_status.pages is 'The number of its pages.';
