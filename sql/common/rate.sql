-- Learns how often a page changes from its fetches. The belief about the rate is a Gamma distribution with two numbers,
-- changes and days: as if that number of changes had been seen in that number of days. The belief is the prior of the
-- host plus the evidence of the page. Only the evidence is stored in the row of the page, so a new prior changes the
-- rates of all pages of a host, and no page is written. recrawl.lab.methods.beliefs is the same in Python, and explains
-- the method.
--
-- The functions return a table of one row, so that the planner can inline them. Each «offset 0» stops the
-- planner from computing an expression again at each place that uses it.

-- The belief about a page, as changes seen in days: a prior plus the evidence of the page. Also its rate, which is the
-- pinned rate if there is one.
create or replace function belief_on(
    prior_changes float8, prior_days float8, pinned_rate real, seen_changes float8, seen_days float8
) returns table (changes float8, days float8, rate real)
language sql immutable parallel safe rows 1
begin atomic
    select changes, days, coalesce(pinned_rate, (changes / days)::real)
    from (select prior_changes + seen_changes as changes, prior_days + seen_days as days offset 0) b;
end;

-- belief_on with the prior of the host of the page, or with the common prior if the host has no prior of its own.
create or replace function belief(
    pinned_rate real, seen_changes float8, seen_days float8, own host_terms, common host_terms
) returns table (changes float8, days float8, rate real)
language sql immutable parallel safe rows 1
begin atomic
    select b.changes, b.days, b.rate
    from belief_on(
        coalesce((own).prior_changes, (common).prior_changes), coalesce((own).prior_days, (common).prior_days),
        pinned_rate, seen_changes, seen_days
    ) b;
end;

-- The days without a change that an early fetch proves. A hint or fetch_now brought it forward: it came after `days`
-- instead of planned_days. It found no change.
--
-- Many hints come because a page changed. If a fetch after a hint counted as a change within the few days before it,
-- each page with hints would seem to change fast. So the fetch teaches what the planned fetch would have taught:
--
--  * The page has changed: the planned fetch would have seen a change too. It counts as a change in planned_days.
--  * The page has not changed: it might still change before the planned fetch. So the days without a change count less.
--    This function says how many they are worth.
--
-- Then the learned rate is correct for any share of the changes that hints announce, any delay of the hints, and any
-- number of false hints. recrawl.lab.methods.signals is the same in Python, and proves it. The result is never so small
-- that its square is less than the least float8: learnt() squares it, and PostgreSQL raises an error then.
create or replace function days_worth(days float8, planned_days float8, rate float8) returns float8
language sql immutable parallel safe
return case when rate * planned_days < 1e-6 then days
            else greatest(least_amount(),
                          planned_days * exp(-least(rate * (planned_days - days), 500))
                          * (1 - exp(-least(rate * days, 500))) / (1 - exp(-least(rate * planned_days, 500)))) end;

-- The evidence on a page after a fetch. days: the time since the fetch before. planned_days: the time from that fetch
-- to the planned one, if a hint or fetch_now brought this fetch forward; then age_days is null. The fetch counted
-- changes, or saw one change of a known age, or only saw whether there was a change. `worth` = the days that the fetch
-- counts for. No row if the fetch taught nothing. The result is exact after no change, a counted number of changes, or
-- one change of known age. If it is only known that there was at least one change, the result is the Gamma distribution
-- with the mean and the variance of the exact one.
--
-- The queries are nested. Read them from the inside: kept, a and b, worth, s and surprise, q, mean and variance.
--
-- a, b: the belief before the fetch, as changes in days. If it is only known that there was a change, then:
--
--     P(no change) = (b / (b + worth))^a = exp(-surprise)    q = P(no change) / P(change)    s = worth / (b + worth)
--     exact belief = (1 + q) · Gamma(a, b) - q · Gamma(a, b + worth)
--     its mean     = a / b  · (1 + q·s)                             = a / b  · `mean`
--     its variance = a / b² · (1 + q·s·(2 - s) - a·s²·q·(1 + q))    = a / b² · `variance`
create or replace function learnt(
    had_changes float8, had_days float8, prior_changes float8, prior_days float8,
    days float8, planned_days float8, counted int, is_changed boolean, age_days float8
) returns table (seen_changes float8, seen_days float8, worth float8)
language sql immutable parallel safe rows 1
begin atomic
    select greatest(-prior_changes + case
               when counted is not null then a + counted
               when not is_changed then a
               when age_days is not null then a + 1
               else a * mean * mean / variance end, 0),
           greatest(-prior_days + case
               when counted is not null or not is_changed then b + worth
               when age_days is not null then b + age_days
               else b * mean / variance end, 0),
           worth
    from (select a, b, worth, 1 + q * s as mean, 1 + q * s * (2 - s) - a * s * s * q * (1 + q) as variance
          from (select a, b, worth, s,
                       case when surprise < 1e-4 then 1 / surprise - 0.5 + surprise / 12
                            else 1 / (exp(surprise) - 1) end as q
                from (select a, b, worth, worth / (b + worth) as s,
                             least(100, a * case
                                 when worth < 1e-4 * b then worth / b * (1 - worth / b * (0.5 - worth / b / 3))
                                 else ln(1 + worth / b) end) as surprise
                      from (select a, b,
                                   case when planned_days is null or counted is not null then days
                                        when is_changed then planned_days
                                        else days_worth(days, planned_days, a / b) end as worth
                            -- Old evidence fades: by a fiftieth for each fetch or by a hundredth for each day, the
                            -- smaller of both.
                            from (select prior_changes + kept * had_changes as a, prior_days + kept * had_days as b
                                  from (select exp(-least(1 / 50.0, days / 100)) as kept
                                        where days > 1e-9 and (counted >= 0 or is_changed is not null) offset 0) k
                                  offset 0) belief
                            offset 0) w
                      offset 0) m
                offset 0) odds
          offset 0) moments;
end;

-- The bounds of the rate of a page: it lies between low and high with a probability of 90 %. They are the quantiles of
-- the Gamma distribution at 5 and 95 %, with an error of at most half a percent.
create or replace function rate_interval(changes float8, days float8) returns table (low float8, high float8)
language sql immutable parallel safe rows 1
begin atomic
    select changes / days * exp(-u * (1.644854 + u * (1.393212 + u * (0.553673 + u * 1.876994)))
                                / (1 + u * (0.2120605 + u * 0.629753))),
           changes / days * exp(u * (1.644854 - u * (0.0175891 + u * 0.0185767)) / (1 + u * (0.4594286 + u * 0.007061)))
    from (select 1 / sqrt(greatest(changes, 0.05)) as u offset 0) root;
end;
