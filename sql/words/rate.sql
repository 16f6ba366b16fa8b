-- How often a page changes, learnt from what its fetches saw. The belief is a Gamma distribution of the rate, as if so
-- many changes had been seen in so many days: what the host's prior says, and on top of it the page's own evidence,
-- which alone is stored. So a new prior moves all pages of a host without touching them.
-- recrawl.lab.methods.beliefs is the same in Python; recrawl.model.change.gamma_filter says why.
--
-- Functions that return a table of one row, so that the planner can inline them; «offset 0» keeps it from working out
-- an expression once for every place that uses it.

create or replace function recrawl_internal.belief_on(
    prior_changes float8, prior_days float8, pinned_rate real, seen_changes float8, seen_days float8
) returns table (changes float8, days float8, rate real)
language sql immutable parallel safe rows 1
begin atomic
    select changes, days, coalesce(pinned_rate, (changes / days)::real)
    from (select prior_changes + seen_changes as changes, prior_days + seen_days as days offset 0) b;
end;
comment on function recrawl_internal.belief_on(float8, float8, real, float8, float8) is
    'What is believed of a page on top of a prior: as if so many changes had been seen in so many days; its rate, if '
    'it is not pinned.';
grant execute on function recrawl_internal.belief_on to recrawl_reader;

-- A host's own prior, else the common one.
create or replace function recrawl_internal.belief(
    pinned_rate real, seen_changes float8, seen_days float8,
    own recrawl_internal.host_terms, common recrawl_internal.host_terms
) returns table (changes float8, days float8, rate real)
language sql immutable parallel safe rows 1
begin atomic
    select b.changes, b.days, b.rate
    from recrawl_internal.belief_on(
        coalesce((own).prior_changes, (common).prior_changes), coalesce((own).prior_days, (common).prior_days),
        pinned_rate, seen_changes, seen_days
    ) b;
end;
comment on function recrawl_internal.belief(
    real, float8, float8, recrawl_internal.host_terms, recrawl_internal.host_terms
) is
    'belief_on the prior of a page''s host.';
grant execute on function recrawl_internal.belief to recrawl_reader;

-- A fetch that a hint brought forward comes because the page changed: taken for a change within the few days until
-- then, it would make every such page look fast. So it says what the fetch as planned would have said. Once changed,
-- that would have seen a change; still unchanged, it might have seen one yet, which takes from what the days without
-- one are worth. Then a page is thought to change as often as it does, whichever share of its changes hints tell of,
-- however late, and however many are false. recrawl.lab.methods.signals is the same in Python, and proves it. Never
-- 0, nor so near that its square would be: learnt() divides by it.
create or replace function recrawl_internal.days_worth(days float8, planned_days float8, rate float8) returns float8
language sql immutable parallel safe
begin atomic
    select case when rate * planned_days < 1e-6 then days
                else greatest(recrawl_internal.least_amount(),
                              planned_days * exp(-least(rate * (planned_days - days), 500))
                              * (1 - exp(-least(rate * days, 500))) / (1 - exp(-least(rate * planned_days, 500)))) end;
end;
comment on function recrawl_internal.days_worth(float8, float8, float8) is
    'How many days without a change a fetch is worth that found none after some days, where it was planned after more.';

-- Exact where it was seen how many changes there were (none; counted; one, of a known age). Where it was only seen that
-- there was at least one: the Gamma distribution with the mean and variance of the truth.
create or replace function recrawl_internal.learnt(
    had_changes float8, had_days float8, prior_changes float8, prior_days float8,
    days float8, planned_days float8, counted int, is_changed boolean, age_days float8
) returns table (seen_changes float8, seen_days float8, worth float8)
language sql immutable parallel safe rows 1
begin atomic
    select greatest(-prior_changes + case
               when counted is not null then a + counted
               when not is_changed then a
               when age_days is not null and planned_days is null then a + 1
               else a * mean * mean / variance end, 0),
           greatest(-prior_days + case
               when counted is not null or not is_changed then b + worth
               when age_days is not null and planned_days is null then b + age_days
               else b * mean / variance end, 0),
           worth
    from (select a, b, worth, 1 + q * s as mean, 1 + q * s * (2 - s) - a * s * s * q * (1 + q) as variance
          from (select a, b, worth, s,
                       case when surprise < 1e-4 then 1 / surprise - 0.5 + surprise / 12
                            else 1 / (exp(surprise) - 1) end as q
                from (select a, b, worth, worth / (b + worth) as s,
                             -- minus the logarithm of the probability that it would not have changed
                             least(100, a * case
                                 when worth < 1e-4 * b then worth / b * (1 - worth / b * (0.5 - worth / b / 3))
                                 else ln(1 + worth / b) end) as surprise
                      from (select a, b,
                                   case when planned_days is null or counted is not null then days
                                        when is_changed then planned_days
                                        else recrawl_internal.days_worth(days, planned_days, a / b) end as worth
                            -- Evidence fades, by a fiftieth a visit or a hundredth a day, whichever is slower.
                            from (select prior_changes + kept * had_changes as a, prior_days + kept * had_days as b
                                  from (select exp(-least(1 / 50.0, days / 100)) as kept
                                        where days > 1e-9 and (counted >= 0 or is_changed is not null) offset 0) k
                                  offset 0) belief
                            offset 0) w
                      offset 0) m
                offset 0) odds
          offset 0) moments;
end;
comment on function recrawl_internal.learnt(float8, float8, float8, float8, float8, float8, int, boolean, float8) is
    'The evidence on a page after a fetch, days after the one before (planned after more: it was brought forward), '
    'that counted changes, saw one of a known age, or only whether there was one; and how many days that was worth. '
    'No row where it saw nothing.';

-- The Gamma distribution's quantiles at 5 and 95 %, to half a percent.
create or replace function recrawl_internal.rate_interval(changes float8, days float8)
returns table (low float8, high float8)
language sql immutable parallel safe rows 1
begin atomic
    select changes / days * exp(-u * (1.644854 + u * (1.393212 + u * (0.553673 + u * 1.876994)))
                                / (1 + u * (0.2120605 + u * 0.629753))),
           changes / days * exp(u * (1.644854 - u * (0.0175891 + u * 0.0185767)) / (1 + u * (0.4594286 + u * 0.007061)))
    from (select 1 / sqrt(greatest(changes, 0.05)) as u offset 0) root;
end;
comment on function recrawl_internal.rate_interval(float8, float8) is
    'Between which rates a page''s lies with a probability of 90 %.';
grant execute on function recrawl_internal.rate_interval to recrawl_reader;
