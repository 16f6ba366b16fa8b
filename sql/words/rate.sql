-- How often a page changes, learnt from what its fetches saw. The belief is a Gamma distribution of the rate, as if so
-- many changes had been seen in so many days: what the host's prior says, and on top of it the page's own evidence,
-- which alone is stored. So a new prior moves all pages of a host without touching them.
-- recrawl.model.change.gamma_filter is the same in Python, and says why.
--
-- Functions that return a table of one row, so that the planner can inline them; «offset 0» keeps it from working out
-- an expression once for every place that uses it.

-- A host's own prior, else the common one.
create or replace function recrawl_internal.belief(
    pinned_rate real, seen_changes float8, seen_days float8,
    own recrawl_internal.host_terms, common recrawl_internal.host_terms
) returns table (changes float8, days float8, rate real)
language sql immutable parallel safe rows 1
as $$
    select changes, days, coalesce(pinned_rate, (changes / days)::real)
    from (select coalesce((own).prior_changes, (common).prior_changes) + seen_changes as changes,
                 coalesce((own).prior_days, (common).prior_days) + seen_days as days
          offset 0) b
$$;
comment on function recrawl_internal.belief(
    real, float8, float8, recrawl_internal.host_terms, recrawl_internal.host_terms
) is
    'What is believed of a page: as if so many changes had been seen in so many days; its rate, if it is not pinned.';
grant execute on function recrawl_internal.belief to recrawl_reader;

-- Exact where it was seen how many changes there were (none; counted; one, of a known age). Where it was only seen that
-- there was at least one: the Gamma distribution with the mean and variance of the truth.
create or replace function recrawl_internal.learnt(
    had_changes float8, had_days float8, prior_changes float8, prior_days float8,
    days float8, counted int, is_changed boolean, age_days float8
) returns table (seen_changes float8, seen_days float8)
language sql immutable parallel safe rows 1
as $$
    select greatest(-prior_changes + case
               when counted is not null then a + counted
               when not is_changed then a
               when age_days is not null then a + 1
               else a * mean * mean / variance end, 0),
           greatest(-prior_days + case
               when counted is not null or not is_changed then b + days
               when age_days is not null then b + age_days
               else b * mean / variance end, 0)
    from (select a, b, 1 + q * s as mean, 1 + q * s * (2 - s) - a * s * s * q * (1 + q) as variance
          from (select a, b, s,
                       case when surprise < 1e-4 then 1 / surprise - 0.5 + surprise / 12
                            else 1 / (exp(surprise) - 1) end as q
                from (select a, b, days / (b + days) as s,
                             -- minus the logarithm of the probability that it would not have changed
                             least(100, a * case
                                 when days < 1e-4 * b then days / b * (1 - days / b * (0.5 - days / b / 3))
                                 else ln(1 + days / b) end) as surprise
                      -- Evidence fades, by a fiftieth a visit or a hundredth a day, whichever is slower.
                      from (select prior_changes + kept * had_changes as a, prior_days + kept * had_days as b
                            from (select exp(-least(1 / 50.0, days / 100)) as kept
                                  where days > 1e-9 and (counted >= 0 or is_changed is not null) offset 0) k
                            offset 0) belief
                      offset 0) m
                offset 0) odds
          offset 0) moments
$$;
comment on function recrawl_internal.learnt(float8, float8, float8, float8, float8, int, boolean, float8) is
    'The evidence on a page after a fetch, days after the one before, that counted changes, saw one of a known age, '
    'or only whether there was one; no row where it saw nothing.';

-- The Gamma distribution's quantiles at 5 and 95 %, to half a percent.
create or replace function recrawl_internal.rate_interval(changes float8, days float8)
returns table (low float8, high float8)
language sql immutable parallel safe rows 1
as $$
    select changes / days * exp(-u * (1.644854 + u * (1.393212 + u * (0.553673 + u * 1.876994)))
                                / (1 + u * (0.2120605 + u * 0.629753))),
           changes / days * exp(u * (1.644854 - u * (0.0175891 + u * 0.0185767)) / (1 + u * (0.4594286 + u * 0.007061)))
    from (select 1 / sqrt(greatest(changes, 0.05)) as u offset 0) root
$$;
comment on function recrawl_internal.rate_interval(float8, float8) is
    'Between which rates a page''s lies with a probability of 90 %.';
grant execute on function recrawl_internal.rate_interval to recrawl_reader;
