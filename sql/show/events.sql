-- events: what people decided, and what happened to the crawl.

create or replace view recrawl.events as
select at, kind, subject, says, by
from event
order by at, event_id;
select describe_view('recrawl.events',
    'One row for each event. Kinds of events: An operator decides about settings, pauses, hosts, patterns, intervals, '
    'or pages to be taken out. A host is blocked (the first, fourth and sixteenth time in a row). A batch job has run. '
    'Upkeep, vitals or retention begins to fail, or works again. The crawl stands still, or goes on. The setting '
    'keep_history says how long the rows are kept.');
