-- The arithmetic of due times. date_part() returns float8 directly; extract() would compute a numeric first.
--
-- Due times are computed with intervals that contain no days and no months, because their length depends on the time
-- zone of the session and on the month. Intervals from callers are converted by in_seconds(), and a day is written as
-- '24 hours'. Limits in which an hour does not matter may be written in days.
--
-- These are small expressions without a search_path of their own, so that the planner can inline them. It does not
-- inline an immutable function that calls a stable one. timestamptz + interval is stable, so functions with it are too.

-- An interval from a caller, converted to seconds: it has the same length in each time zone and month. A month counts
-- as 30 days, a year as 365.25 days. The result is clamped to 3,000 years, so that sums with times do not overflow.
create or replace function in_seconds(given interval) returns interval
language sql immutable parallel safe
return case when given is not null then
    make_interval(secs => least(greatest(date_part('epoch', given), -1e11), 1e11)) end;

-- A time for clients that cannot read infinity (many clients of Postgres cannot): the year 9999 means never.
create or replace function readable(t timestamptz) returns timestamptz
language sql stable parallel safe
return least(t, for_ever());

-- The due time of a page that is known but must not be fetched until somebody asks for it. It is not infinity, because
-- PostgreSQL before 17 cannot compute with infinity. The time is different for each page: the queue finds a page by its
-- due time, and would have to read all pages with the same due time.
create or replace function never(page_id bigint) returns timestamptz
language sql stable parallel safe
return for_ever() + page_id % 1000000000000 * interval '1 microsecond';

-- Whether a due time means never.
create or replace function is_never(due timestamptz) returns boolean
language sql stable parallel safe
return due >= for_ever();

-- The time; null if it means never.
create or replace function null_if_never(t timestamptz) returns timestamptz
language sql stable parallel safe
return case when not is_never(t) then t end;

-- The nearest frequency that a page may have, in fetches per day. It is at least 1e-4, so no due time is more than
-- 10,000 days ahead: much later times would overflow. The clamping comes before the conversion to real, which raises if
-- the number does not fit. Callers do not pass null: it would become 86400.
create or replace function clamped_frequency(per_day float8) returns real
language sql immutable parallel safe
return greatest(least(per_day, 86400), 1e-4)::real;

-- The fetches per day that the due times of a page follow: the frequency in its row, or its pinned rate, or the setting
-- `frequency`. The row of a page without a pinned interval has no frequency before its first fetch, and before the
-- first allocation.
create or replace function page_frequency(frequency float8, pinned_rate float8, default_frequency float8) returns real
language sql immutable parallel safe
return clamped_frequency(coalesce(frequency, pinned_rate, default_frequency));

-- How often per day something happens that happens once in each interval.
create or replace function times_per_day(every interval) returns float8
language sql immutable parallel safe
return 86400 / date_part('epoch', every);

-- The most fetches per day of any page; null = no limit.
create or replace function highest_frequency(s setting) returns float8
language sql immutable parallel safe
return times_per_day((s).shortest_interval);

-- The next due time of a page, given its last due time and the slot that it got. The due times of a page form a grid:
-- each is 1/frequency after the one before, even if the slot was late. Periods that have passed completely are skipped.
-- If the next time of the grid is less than shortest_interval after a late slot, a new grid begins at slot +
-- shortest_interval.
create or replace function next_due(due timestamptz, slot timestamptz, frequency real, shortest_interval interval)
returns timestamptz
language sql stable parallel safe
return greatest(due + greatest(1, ceil(date_part('epoch', slot - due) / (86400 / frequency::float8)))
                      * (86400 / frequency::float8) * interval '1 second',
                slot + shortest_interval);

-- The least time between two requests to a host: the gap that an operator set, otherwise the greater of the crawl delay
-- of its robots.txt and the default.
create or replace function host_gap(gap interval, crawl_delay interval, default_gap interval) returns interval
language sql stable parallel safe
return coalesce(gap, greatest(crawl_delay, default_gap));

-- The same for a host.
create or replace function gap_of(h host, s setting) returns interval
language sql stable parallel safe
return host_gap(h.gap, h.crawl_delay, s.default_gap);

-- The window of a host: how long after its slot a request may start. The gap is the least time between two requests.
-- Slots are one gap and one window apart. So two requests that start in their windows are never closer than the gap:
--
--     slot ─── window ──▶ start_by ─── gap ──▶ next slot
--     (slot_every() is the time between two slots; host.last_start_by is the start_by of the last one)
create or replace function start_window(gap interval, window_share real) returns interval
language sql immutable parallel safe
return least(gap * window_share, interval '2 seconds');

-- The time between two slots of a host: its gap plus the window in which a request may start.
create or replace function slot_every(h host, s setting) returns interval
language sql stable parallel safe
return gap_of(h, s) + start_window(gap_of(h, s), s.window_share);

-- The next slot of a host, by its gap alone. The host may still be blocked or wait for a leased page: see when_free().
create or replace function next_slot(h host, s setting) returns timestamptz
language sql stable parallel safe
return h.last_start_by + gap_of(h, s);

-- When a host can give a page again: a slot is free, the host is not blocked, and it waits for no leased page. Then
-- next_pages looks at its new pages (new_ready_at). It looks at its revisits when the first one is due too (ready_at).
-- The result is at least t, the time at which it is written. Scans for ready hosts begin at a horizon (horizon.sql) and
-- would miss an earlier time.
create or replace function when_free(h host, s setting, t timestamptz) returns timestamptz
language sql stable parallel safe
return greatest(next_slot(h, s), h.blocked_until, h.busy_until, t);

-- The pause after a failure: `first`, doubled for each earlier pause, at most `longest`. It varies by 10 %, so that
-- pages that failed together are not tried again at the same moment.
create or replace function backoff(first interval, longest interval, times int) returns interval
language sql volatile parallel safe
return (0.9 + 0.2 * random()) * least(first * 2 ^ least(times, 20), longest);
