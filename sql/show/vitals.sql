-- vitals: the figures of the crawl for each minute and for each hour.

create or replace view recrawl.vitals as
select at, fetches, changed, unchanged, first, missing, failed, throttled, denied, retries, untold, stale, duplicate,
       refused,
       late_1m, late_10m, late_1h, late_6h, late_1d, late_more, late_seconds, lost,
       handed_out, expired, missed, asks, empty_asks, new_pages,
       due, due_crawler, due_gap, due_blocked, new_waiting, leased,
       pages, hosts, hosts_ready, hosts_blocked, hosts_capped, ready_wait, inbox_wait,
       fresh, fresh_error, covered, promised, possible, unpolite, budget
from recrawl_internal.vital;
comment on view recrawl.vitals is
    'What happened in each minute, and how things stood at its end; kept by the setting keep_vitals. A worker writes '
    'it: the newest row is about a minute old. A minute without a worker has no row, or nulls for how things stood.';
select recrawl_internal.copy_comments('recrawl.vitals');

create or replace view recrawl.vitals_by_hour as
select at, fetches, changed, unchanged, first, missing, failed, throttled, denied, retries, untold, stale, duplicate,
       refused,
       late_1m, late_10m, late_1h, late_6h, late_1d, late_more, late_seconds, lost,
       handed_out, expired, missed, asks, empty_asks, new_pages,
       due, due_crawler, due_gap, due_blocked, new_waiting, leased,
       pages, hosts, hosts_ready, hosts_blocked, hosts_capped, ready_wait, inbox_wait,
       fresh, fresh_error, covered, promised, possible, unpolite, budget
from recrawl_internal.vital_hour;
comment on view recrawl.vitals_by_hour is
    'The same by the hour, kept by the setting keep_history: what happened is added up; how things stood is the mean '
    'of the hour, of ready_wait and inbox_wait the longest.';
select recrawl_internal.copy_comments('recrawl.vitals_by_hour');

grant select on recrawl.vitals, recrawl.vitals_by_hour to recrawl_reader;
