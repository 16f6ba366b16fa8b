-- Measures the budget, for users who do not know theirs. Every five minutes the last calls of next_pages are judged by
-- the number of short calls: calls that returned fewer pages than the caller asked for.
--
--    at most a tenth short   pages waited for the crawlers. The crawlers cannot fetch more than they got, so the budget
--                            falls towards that number, at most 3 % in a step
--    at least half short     the crawlers could fetch more. If the budget was used up, it rises. If not, the gaps of
--                            the hosts are the limit, and it falls
--
-- Calls that name a host do not count: nearly all of them are short, because one host has few pages that may be fetched
-- now. But the pages that they got count.
--
-- If no call counts, nothing is measured for twelve hours, and the budget stays the same. Crawlers that pause every
-- night fetch less in a day than their speed at work says. If revisits wait while the crawlers pause, the budget is the
-- mean over the day. If only new pages wait, it is the speed at work.

select make_type('measured', '(short_share float8, now float8, hour float8, most float8, in_a_day float8)',
    'Pages per day that crawlers got. now: in the last step; hour: in the last 12 steps; most: in the last 12 of '
    'the steps in which at most a tenth of the calls was short; in_a_day: `most`; if revisits wait while crawlers '
    'pause, `most` times the share of the day that they work. short_share: the share of short calls in the last 3 '
    'steps.');

-- The time between two measurements of the budget.
create or replace function measuring_step() returns interval
language sql immutable parallel safe
return interval '5 minutes';

-- The counters of the crawlers now, for the table budget_step.
create or replace function crawler_counters(t timestamptz) returns budget_step
language sql volatile as $$
-- plans: inherited
    select t, a.last_value - o.last_value, s.last_value, h.last_value
    from ask_count a, host_ask_count o, short_ask_count s, handed_out_count h
$$;

-- Moves the counts of handed out pages to a new budget: they stay as far ahead of the budget, or behind it, as before.
-- So the pace of new pages continues without a jump. Both counts are compared with the fetches that the budget gives
-- since 1970, so they move by the difference between the two budgets.
create or replace function follow_budget(t timestamptz, before float8, after float8, discovery float8) returns void
language sql volatile as $$
    select setval('fetch_count', greatest(0, f.last_value + fetches_by(t, after) - fetches_by(t, before))),
           setval('new_count', greatest(0, n.last_value + fetches_by(t, after * discovery)
                                           - fetches_by(t, before * discovery)))
    from fetch_count f, new_count n
$$;

-- The budget that follows from the last budget and the measurements. The first line that fits counts:
--
--     short calls       and                                                   the new budget
--     at least half     less than .9 of the budget was used, now and in       .5 % less
--                       the last hour: the gaps limit it
--     at least half     .97 of it was used now, and `most` is null            5 % more
--     at least half     .93 of it was used in the last hour                   .5 % more; 3 % more if the last budget is
--                                                                             below .9 of in_a_day. At most 1.05 × the
--                                                                             greater of most and hour
--     at most a tenth   it is above in_a_day: the crawlers limit it           in_a_day, but at most 3 % less
--     any               nothing of this                                       stays
--
-- Null in `most` means: in every step of the last day more than a tenth of the calls was short. Then the budget may be
-- far too low.
create or replace function budget_after(budget float8, m measured) returns float8
language sql immutable parallel safe
return least(1e12, greatest(1, case
    when m.short_share >= 0.5 and greatest(m.now, m.hour) < 0.9 * budget then
        0.995 * budget
    when m.short_share >= 0.5 and m.most is null and m.now >= 0.97 * budget then 1.05 * budget
    when m.short_share >= 0.5 and m.hour >= 0.93 * budget then
        greatest(budget, least(budget * case when budget < 0.9 * m.in_a_day then 1.03 else 1.005 end,
                               1.05 * greatest(m.most, m.hour)))
    when m.short_share <= 0.1 and budget > m.in_a_day then greatest(m.in_a_day, 0.97 * budget)
    else budget end));

-- The last measurements of the crawlers. A value that is not known is null.
create or replace function recent_measurements(t timestamptz) returns measured
language plpgsql volatile as $$
-- plans: lookups
declare
    one_step constant float8 := date_part('epoch', measuring_step()) / 86400;
    since    constant timestamptz := from_micros((select last_value from host_horizon));
    is_late  constant boolean := coalesce(
        (select h.ready_at < t - interval '1 hour' from host h
         where h.ready_at between since and t order by h.ready_at limit 1), false);
    m        measured;
    share_at_work float8;
begin
    with
    -- A step that is much longer than five minutes includes a pause of the crawlers.
    step as materialized (
        select *, days < 3 * one_step as is_at_work, row_number() over (order by at desc) as nth_last
        from (select s.at,
                     date_part('epoch', s.at - lag(s.at) over w) / 86400 as days,
                     s.calls - lag(s.calls) over w as calls,
                     s.short - lag(s.short) over w as short,
                     s.handed_out - lag(s.handed_out) over w as pages
              from budget_step s
              window w as (order by s.at)) d
        where days > 0
    )
    select (select sum(s.short)::float8 / nullif(sum(s.calls), 0) from step s where s.nth_last <= 3 and s.is_at_work),
           (select s.pages / s.days from step s where s.nth_last = 1 and s.is_at_work),
           (select sum(s.pages) / sum(s.days) from step s where s.nth_last <= 12 and s.is_at_work),
           (select sum(f.pages) / sum(f.days)
            from (select * from step s where s.is_at_work and s.short <= 0.1 * s.calls order by s.at desc limit 12) f),
           (select sum(s.days) filter (where s.is_at_work) / sum(s.days) filter (where s.days < 0.5) from step s)
    into m.short_share, m.now, m.hour, m.most, share_at_work;
    m.in_a_day := m.most * case when is_late then share_at_work else 1 end;
    return m;
end $$;

-- Every five minutes, moves a measured budget towards the number of pages that crawlers can fetch.
create or replace function measure_budget(t timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups; writes setting, budget_step; locks setting (passing over a locked one), budget_step
declare
    before     setting;
    last       budget_step;
    this       budget_step;
    new_budget float8;
begin
    select * into last from budget_step order by at desc limit 1;
    if last.at is null or (last.at > t - measuring_step() and last.at <= t) then
        return;
    end if;
    this := crawler_counters(t);
    select * into before from setting where budget_is_measured for update skip locked;
    -- If no call has counted since the last step, wait. So a pause of less than twelve hours, for example a night,
    -- becomes part of one long step. A longer pause is cut into steps of twelve hours, which do not count in in_a_day.
    -- The rest of the pause counts like a night.
    if not found or (this.calls = last.calls and last.at > t - interval '12 hours') then
        return;
    end if;
    delete from budget_step where at > t;                  -- these steps were written while the clock was ahead
    insert into budget_step values (this.*);
    delete from budget_step where at < t - interval '24 hours'
        and at < (select s.at from budget_step s order by s.at desc offset 12 limit 1);
    new_budget := budget_after(before.budget, recent_measurements(t));
    if new_budget <> before.budget then
        update setting set budget = new_budget;
        perform follow_budget(t, before.budget, new_budget, before.discovery);
    end if;
end $$;
