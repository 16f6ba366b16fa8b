-- How many new pages the budget allows now. The budget counts all fetches. Revisits are handed out when they are due.
-- New pages get the fetches that revisits leave, and at least the share `discovery`.
--
-- While there is a budget, two sequences count the pages that are handed out. fetch_count counts all pages and the
-- slots of take_slot. new_count counts the new pages. A sequence is exact with any number of callers. It needs no lock,
-- so no caller waits for another one, as it would for a row.
--
-- Each count is compared with the number of fetches that the budget allows from 1970 until now. After a pause, a new
-- budget or a step of the clock a count is far from this number. Then near_budget() moves the count.

-- The number of fetches from 1970 to a time, at a number of fetches per day.
create or replace function fetches_by(t timestamptz, per_day float8) returns bigint
language sql stable parallel safe      -- like extract()
return floor(extract(epoch from t)::float8 * (per_day / 86400))::bigint;

-- A count of fetches, moved if it is far from the number of fetches that the budget allows. It may be behind that
-- number by the fetches of one second, or by 1 if that is more. So fetches that no crawler asked for are not made up
-- later. It may be ahead by the fetches of one hour, or by 100 if that is more. These are subtracted later: if new
-- pages got more than their share while few revisits came, they get less when more revisits come. A count that is much
-- further ahead was made while the clock was wrong. It becomes the number that the budget allows.
create or replace function near_budget(count bigint, t timestamptz, per_day float8) returns bigint
language plpgsql stable as $$
declare
    wanted      constant bigint := fetches_by(t, per_day);
    most_behind constant bigint := greatest(per_day / 86400, 1);
    most_ahead  constant bigint := greatest(per_day / 24, 100);
begin
    return case when count > wanted + 1.5 * most_ahead + 10000 then wanted
                else greatest(least(count, wanted + most_ahead), wanted - most_behind) end;
end $$;

-- The number of new pages that the budget allows until the end of a caller's look-ahead.
create or replace function new_pages_left(t timestamptz, ahead interval, s setting) returns int
language plpgsql volatile as $$
-- plans: inherited
declare
    fetched     bigint;
    fetched_new bigint;
    kept        bigint;
    kept_new    bigint;
begin
    select f.last_value, n.last_value into fetched, fetched_new from fetch_count f, new_count n;
    kept := near_budget(fetched, t, s.budget);
    kept_new := near_budget(fetched_new, t, s.budget * s.discovery);
    if kept <> fetched then
        perform setval('fetch_count', kept);
    end if;
    if kept_new <> fetched_new then
        perform setval('new_count', kept_new);
    end if;
    return least(2147483647, greatest(0, fetches_by(t + ahead, s.budget) - kept,
                                      fetches_by(t + ahead, s.budget * s.discovery) - kept_new));
end $$;

-- Counts pages that were handed out.
create or replace function count_fetches(pages int, new_pages int) returns void
language plpgsql volatile as $$
-- plans: inherited
begin
    perform nextval('fetch_count') from generate_series(1, pages);
    perform nextval('new_count') from generate_series(1, new_pages);
end $$;

-- The first time at which the budget allows one new page more than these counts.
create or replace function budget_reaches(fetched bigint, fetched_new bigint, s setting) returns timestamptz
language sql stable parallel safe
return timestamptz 'epoch' + interval '1 second' * least(
    1e11,                              -- the year 5138; a tiny budget could give a time that is not valid
    (fetched + 1) / (s.budget / 86400), (fetched_new + 1) / nullif(s.budget * s.discovery / 86400, 0));

-- The first time at which the budget allows a new page.
create or replace function room_in_budget_from(t timestamptz, s setting) returns timestamptz
language plpgsql volatile as $$
-- plans: inherited
begin
    return (
        select case when s.budget is null then t else greatest(t, budget_reaches(
                   near_budget(f.last_value, t, s.budget), near_budget(n.last_value, t, s.budget * s.discovery), s)) end
        from fetch_count f, new_count n);
end $$;
