-- lease_status: the leases that hold pages.

create or replace view recrawl.lease_status as
select l.lease_id,
       min(l.handed_out_at) as handed_out_at,
       max(l.lease_until) as lease_until,
       sum(cardinality(l.page_ids))::int as pages,
       sum(l.unreported)::int as unreported
from lease l
group by l.lease_id;
select describe_view('recrawl.lease_status',
    'One row for each lease: a call of next_pages whose pages are not all reported yet. When the lease ends, other '
    'crawlers get its unreported pages.',
    'pages', 'The number of its pages.');
