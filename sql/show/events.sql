create or replace view recrawl.events as
select at, kind, subject, says, by
from recrawl_internal.event
order by at, event_id;
comment on view recrawl.events is
    'What people decided (settings, hosts, exclusions), blocks, runs of jobs, and when the crawl stood still; kept by '
    'the setting keep_history.';
select recrawl_internal.copy_comments('recrawl.events');
grant select on recrawl.events to recrawl_reader;
