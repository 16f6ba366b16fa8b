create or replace view recrawl.lease_status as
select l.lease_id,
       min(l.popped_at) as popped_at,
       max(l.lease_until) as lease_until,
       sum(cardinality(l.page_ids))::int as pages,
       sum(l.unreported)::int as unreported
from recrawl_internal.lease l
group by l.lease_id;
comment on view recrawl.lease_status is 'What is handed out: a row per call of next_pages that is not fully reported. Past lease_until its unreported pages go back.';
