-- vitals: the figures of the crawl for each minute and for each hour.

create or replace view recrawl.vitals as
select at, fetches, changed, unchanged, first, missing, failed, throttled, denied, retries, change_unknown, stale,
       duplicate, refused,
       late_1m, late_10m, late_1h, late_6h, late_1d, late_more, late_seconds, skipped,
       handed_out, expired, missed, calls, empty_calls, pages_added,
       due, due_crawler, due_gap, due_blocked, new_waiting, leased,
       pages, hosts, hosts_ready, hosts_blocked, hosts_capped, ready_wait, inbox_wait,
       fresh, fresh_error, covered, expected, limit_with_gaps, limit_without_gaps, budget
from vital;
select describe_view('recrawl.vitals',
    'One row per minute: what happened in the minute, and the state of the crawl at its end. A worker writes the '
    'rows, so the newest row is about a minute old. If no worker ran in a minute, a worker writes its row later with '
    'null in the columns about the state. A worker writes only the rows of the last half hour. The setting '
    'keep_vitals says how long rows are kept. A revisit is a fetch of a page that was handed out before.');

create or replace view recrawl.vitals_by_hour as
select at, fetches, changed, unchanged, first, missing, failed, throttled, denied, retries, change_unknown, stale,
       duplicate, refused,
       late_1m, late_10m, late_1h, late_6h, late_1d, late_more, late_seconds, skipped,
       handed_out, expired, missed, calls, empty_calls, pages_added,
       due, due_crawler, due_gap, due_blocked, new_waiting, leased,
       pages, hosts, hosts_ready, hosts_blocked, hosts_capped, ready_wait, inbox_wait,
       fresh, fresh_error, covered, expected, limit_with_gaps, limit_without_gaps, budget
from vital_hour;
select describe_view('recrawl.vitals_by_hour',
    'One row per hour, computed from the rows of vitals. Counts are added up. Columns about the state of the crawl '
    'have the mean of the hour. ready_wait and inbox_wait have the maximum. The setting keep_history says how long '
    'rows are kept.');
