create or replace view recrawl.events as
select at, kind, subject, says, by
from event
order by at, event_id;
comment on view recrawl.events is
    'One row for each decision of an operator about settings, pauses, hosts, patterns, intervals and pages that are '
    'taken out; for blocks of hosts (the first, fourth and sixteenth in a row); for each run of a batch job; and for '
    'each time that the crawl stood still. The setting keep_history says how long the rows are kept.';
select copy_comments('recrawl.events');
