create or replace view recrawl.events as
select at, kind, subject, says, by
from event
order by at, event_id;
comment on view recrawl.events is
    'One row for each decision of an operator (settings, hosts, exclusions), blocks of hosts (the first, fourth and '
    'sixteenth in a row), each run of a job, and each time that the crawl stood still. The setting keep_history says '
    'how long the rows are kept.';
select copy_comments('recrawl.events');
