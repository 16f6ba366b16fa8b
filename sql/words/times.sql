-- The arithmetic of due times. date_part() gives float8 at once; extract() would go by way of numeric.
--
-- Intervals that are added to times hold no days and no months: how long these are is a matter of the session's time
-- zone and of the month. What people say comes through in_seconds(); what stands here is in hours.
--
-- Small pure expressions without a pinned search_path, so that the planner can inline them. It does only when they are
-- declared as volatile as what they call: timestamptz + interval is stable.

-- A month counts as 30 days, a year as 365.25. Clamped to 3,000 years, where times still can be told.
create or replace function recrawl_internal.in_seconds(said interval) returns interval
language sql immutable parallel safe
begin atomic
    select case when said is not null then
        make_interval(secs => least(greatest(date_part('epoch', said), -1e11), 1e11)) end;
end;
comment on function recrawl_internal.in_seconds(interval) is
    'An interval that somebody said, as one that means the same in every time zone and month.';

create or replace function recrawl_internal.readable(t timestamptz) returns timestamptz
language sql stable parallel safe
begin atomic
    select least(t, recrawl_internal.for_ever());
end;
comment on function recrawl_internal.readable(timestamptz) is
    'A time for those who cannot read infinity, as many clients of Postgres: 9999 is for ever.';
grant execute on function recrawl_internal.readable to recrawl_reader;

-- Not infinity, which PostgreSQL before 17 cannot reckon with. Each page's own, as the queue finds a page by its due
-- time, and would have to look through all that share one.
create or replace function recrawl_internal.never(page_id bigint) returns timestamptz
language sql stable parallel safe
begin atomic
    select recrawl_internal.for_ever() + page_id % 1000000000000 * interval '1 microsecond';
end;
comment on function recrawl_internal.never(bigint) is
    'The due time of a page that is known, and not wanted until somebody says so.';

create or replace function recrawl_internal.is_never(due timestamptz) returns boolean
language sql stable parallel safe
begin atomic
    select due >= recrawl_internal.for_ever();
end;
comment on function recrawl_internal.is_never(timestamptz) is 'Whether a due time is none that comes.';
grant execute on function recrawl_internal.is_never to recrawl_reader;

create or replace function recrawl_internal.if_it_comes(t timestamptz) returns timestamptz
language sql stable parallel safe
begin atomic
    select case when not recrawl_internal.is_never(t) then t end;
end;
comment on function recrawl_internal.if_it_comes(timestamptz) is 'A time; null for one that never comes.';
grant execute on function recrawl_internal.if_it_comes to recrawl_reader;

-- A millisecond has a thousand of them: crawlers give many pages the same second.
create or replace function recrawl_internal.due_of_its_own(due timestamptz, page_id bigint) returns timestamptz
language sql stable parallel safe
begin atomic
    select case when due = 'infinity' then recrawl_internal.never(page_id)
                when recrawl_internal.within_reach(due) then due + page_id % 1000 * interval '1 microsecond' end;
end;
comment on function recrawl_internal.due_of_its_own(timestamptz, bigint) is
    'A due time that a crawler said, as the one of a page: infinity is never, others are spread over a millisecond. '
    'Null for one that is refused, see problem_with_due().';

-- Before the first allocation a page is fetched as often as it is said to change, else as the setting says. No page is
-- put off for longer than 10,000 days, which times can hold.
-- Clamped before it is made a real, which raises where it cannot hold a number.
create or replace function recrawl_internal.page_frequency(
    frequency float8, pinned_rate float8, default_frequency float8
) returns real
language sql immutable parallel safe
begin atomic
    select greatest(least(coalesce(frequency, pinned_rate, default_frequency), 86400), 1e-4)::real;
end;
comment on function recrawl_internal.page_frequency(float8, float8, float8) is
    'Fetches per day that a page''s due times follow.';
grant execute on function recrawl_internal.page_frequency to recrawl_reader;

create or replace function recrawl_internal.times_per_day(every interval) returns float8
language sql immutable parallel safe
begin atomic
    select 86400 / date_part('epoch', every);
end;
comment on function recrawl_internal.times_per_day(interval) is 'How often a day something comes that comes so often.';
grant execute on function recrawl_internal.times_per_day to recrawl_reader;

create or replace function recrawl_internal.highest_frequency(s recrawl_internal.setting) returns float8
language sql immutable parallel safe
begin atomic
    select recrawl_internal.times_per_day((s).shortest_interval);
end;
comment on function recrawl_internal.highest_frequency(recrawl_internal.setting) is
    'Fetches per day that no page exceeds; null = no limit.';
grant execute on function recrawl_internal.highest_frequency to recrawl_reader;

-- DELAYED: the next due is due + 1/f on the page's own grid, however late the slot; periods that passed entirely are
-- skipped. Where the grid would bring a late page back sooner than it may come, it starts anew from there.
create or replace function recrawl_internal.next_due(
    due timestamptz, slot timestamptz, frequency real, shortest_interval interval
) returns timestamptz
language sql stable parallel safe
begin atomic
    select greatest(due + greatest(1, ceil(date_part('epoch', slot - due) / (86400 / frequency::float8)))
                          * (86400 / frequency::float8) * interval '1 second',
                    slot + shortest_interval);
end;
comment on function recrawl_internal.next_due(timestamptz, timestamptz, real, interval) is
    'When a page whose visit was due at one time and got a later slot is due again.';

create or replace function recrawl_internal.host_gap(gap interval, crawl_delay interval, default_gap interval)
returns interval
language sql stable parallel safe
begin atomic
    select coalesce(gap, greatest(crawl_delay, default_gap));
end;
comment on function recrawl_internal.host_gap(interval, interval, interval) is
    'The least time between two requests to a host: the operator''s word, else the greater of the host''s and the '
    'default.';
grant execute on function recrawl_internal.host_gap to recrawl_reader;

-- The gap is a promise about requests. A slot reserves the time in which its request may start: slots are the gap and
-- this apart, so two requests that start in theirs are never closer than the gap.
create or replace function recrawl_internal.start_window(gap interval, start_within real) returns interval
language sql immutable parallel safe
begin atomic
    select least(gap * start_within, interval '2 seconds');
end;
comment on function recrawl_internal.start_window(interval, real) is
    'How long after its slot a request to a host may start.';
grant execute on function recrawl_internal.start_window to recrawl_reader;

-- When a slot comes back, its host goes back to a gap before it. By a longer gap than the slot was given by, that would
-- be too close to the one before: such a host forgets which slot was its last, by a microsecond.
create or replace function recrawl_internal.last_start_by_after(
    last_start_by timestamptz, gap interval, new_gap interval
) returns timestamptz
language sql stable parallel safe
begin atomic
    select case when new_gap > gap then last_start_by + interval '1 microsecond' else last_start_by end;
end;
comment on function recrawl_internal.last_start_by_after(timestamptz, interval, interval) is
    'last_start_by of a host after a change of its gap: no slot that was given by a shorter one comes back.';

create or replace function recrawl_internal.slot_every(h recrawl_internal.host, s recrawl_internal.setting)
returns interval
language sql stable parallel safe
begin atomic
    select recrawl_internal.host_gap(h.gap, h.crawl_delay, s.default_gap)
           + recrawl_internal.start_window(
                 recrawl_internal.host_gap(h.gap, h.crawl_delay, s.default_gap), s.start_within);
end;
comment on function recrawl_internal.slot_every(recrawl_internal.host, recrawl_internal.setting) is
    'Time between two slots of a host: its gap, and the window in which a request may start.';
grant execute on function recrawl_internal.slot_every to recrawl_reader;

create or replace function recrawl_internal.next_slot(h recrawl_internal.host, s recrawl_internal.setting)
returns timestamptz
language sql stable parallel safe
begin atomic
    select h.last_start_by + recrawl_internal.host_gap(h.gap, h.crawl_delay, s.default_gap);
end;
comment on function recrawl_internal.next_slot(recrawl_internal.host, recrawl_internal.setting) is
    'The first moment a request to a host may start.';
grant execute on function recrawl_internal.next_slot to recrawl_reader;

-- Never below the time of writing: pops look for ready hosts from a horizon upwards (horizon.sql).
create or replace function recrawl_internal.when_ready(
    head_due timestamptz, next_slot_at timestamptz, blocked_until timestamptz, busy_until timestamptz, t timestamptz
) returns timestamptz
language sql immutable parallel safe
begin atomic
    select greatest(head_due, next_slot_at, blocked_until, busy_until, t);
end;
comment on function recrawl_internal.when_ready(timestamptz, timestamptz, timestamptz, timestamptz, timestamptz) is
    'When a host should be looked at next: it has a page due (null: a new one), a slot free, no block and no page out '
    'that it waits for.';

create or replace function recrawl_internal.backoff(first interval, longest interval, times int) returns interval
language sql volatile parallel safe
begin atomic
    select (0.9 + 0.2 * random()) * least(first * 2 ^ least(times, 20), longest);
end;
comment on function recrawl_internal.backoff(interval, interval, int) is
    'first, doubled as many times as it was waited already, at most longest; 10 % either way so that failures do '
    'not march in step.';
