-- The budget is all fetches. Revisits come when they are due; new pages get what those leave of it, and at least the
-- share `discovery`. Two sequences count the pages that were handed out, all and new ones: exact with any number of
-- callers, without a row that they would wait for. Beside each stands what the budget would have come to since 1970: a
-- count that is far from it, after a pause, another budget or a step of the clock, is brought near.

create or replace function recrawl_internal.fetches_by(t timestamptz, per_day float8) returns bigint
language sql immutable parallel safe
begin atomic
    select floor(extract(epoch from t)::float8 * (per_day / 86400))::bigint;
end;
comment on function recrawl_internal.fetches_by(timestamptz, float8) is
    'How many fetches so many per day come to from 1970 to a time.';

-- What was not fetched in a second is not made up for later. What came too much is, be it revisits or new pages, for an
-- hour's fetches, or a hundred: else new pages would fill what revisits leave now, and have their share beside it then.
-- What is ahead by far more comes from another clock.
create or replace function recrawl_internal.near(count bigint, t timestamptz, per_day float8) returns bigint
language plpgsql immutable
set search_path = recrawl_internal, pg_temp
as $$
declare
    wanted      constant bigint := fetches_by(t, per_day);
    most_behind constant bigint := greatest(per_day / 86400, 1);
    most_ahead  constant bigint := greatest(per_day / 24, 100);
begin
    return case when count > wanted + 1.5 * most_ahead + 10000 then wanted
                else greatest(least(count, wanted + most_ahead), wanted - most_behind) end;
end $$;
comment on function recrawl_internal.near(bigint, timestamptz, float8) is
    'A count of fetches, brought near what so many per day come to.';

create or replace function recrawl_internal.new_pages_left(
    t timestamptz, ahead interval, s recrawl_internal.setting
) returns int
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited
declare
    fetched     bigint;
    fetched_new bigint;
    kept        bigint;
    kept_new    bigint;
begin
    select f.last_value, n.last_value into fetched, fetched_new from fetch_count f, new_count n;
    kept := near(fetched, t, s.budget);
    kept_new := near(fetched_new, t, s.budget * s.discovery);
    if kept <> fetched then
        perform setval('fetch_count', kept);
    end if;
    if kept_new <> fetched_new then
        perform setval('new_count', kept_new);
    end if;
    return least(2147483647, greatest(0, fetches_by(t + ahead, s.budget) - kept,
                                      fetches_by(t + ahead, s.budget * s.discovery) - kept_new));
end $$;
comment on function recrawl_internal.new_pages_left(timestamptz, interval, recrawl_internal.setting) is
    'How many new pages the budget leaves room for now, or until a caller''s look-ahead ends.';

create or replace function recrawl_internal.count_fetches(pages int, new_pages int) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited
begin
    perform nextval('fetch_count') from generate_series(1, pages);
    perform nextval('new_count') from generate_series(1, new_pages);
end $$;
comment on function recrawl_internal.count_fetches(int, int) is 'Counts pages that were handed out.';

create or replace function recrawl_internal.room_in_budget_from(t timestamptz, s recrawl_internal.setting)
returns timestamptz
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited
begin
    return (
        select case when s.budget is null then t else greatest(t, timestamptz 'epoch' + interval '1 second' * least(
                   (near(f.last_value, t, s.budget) + 1) / (s.budget / 86400),
                   (near(n.last_value, t, s.budget * s.discovery) + 1) / nullif(s.budget * s.discovery / 86400, 0))) end
        from fetch_count f, new_count n);
end $$;
comment on function recrawl_internal.room_in_budget_from(timestamptz, recrawl_internal.setting) is
    'When a new page may be handed out, as far as the budget decides.';
