create or replace view recrawl.lease_status as
select l.lease_id,
       min(l.popped_at) as popped_at,
       max(l.lease_until) as lease_until,
       sum(cardinality(l.page_ids))::int as pages,
       sum(l.unreported)::int as unreported
from recrawl_internal.lease l
group by l.lease_id;
comment on view recrawl.lease_status is
    'What is handed out: a row per call of next_pages that is not fully reported. Past lease_until its unreported '
    'pages go back.';
select recrawl_internal.copy_comments('recrawl.lease_status');
comment on column recrawl.lease_status.lease_until is 'When what is unreported goes back.';
comment on column recrawl.lease_status.pages is 'Pages it covers.';
comment on column recrawl.lease_status.unreported is 'Pages of it that were not reported yet.';
grant select on recrawl.lease_status to recrawl_reader;
