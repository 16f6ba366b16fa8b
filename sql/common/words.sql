-- Numbers and times in words, as worker/recrawl/words.py writes them. The result does not depend on the session's
-- language or time zone.

-- A whole number with commas: 1,234,567.
create or replace function grouped(n numeric) returns text
language sql immutable parallel safe
return ltrim(to_char(n, '999,999,999,999,999,990'));

-- A number and its noun: 3 pages. If counting stopped at `most`: at least 1,000 pages.
create or replace function how_many(n bigint, most bigint, thing text) returns text
language sql immutable parallel safe
return case when n >= most then 'at least ' else '' end
       || case n when 0 then 'no' else grouped(n) end
       || ' ' || thing || case when n = 1 then '' when thing like '%ch' then 'es' else 's' end;

-- How long something lasts: 90 s, 12 min, 3 days.
create or replace function in_words(lasts interval) returns text
language sql immutable parallel safe
begin atomic
    select case
        when seconds >= 2 * 31557600 then grouped(round(seconds / 31557600)::numeric) || ' years'
        when seconds >= 2 * 86400 then round(seconds / 86400) || ' days'
        when seconds >= 2 * 3600 or seconds = 3600 then round(seconds / 3600) || ' h'
        when seconds >= 2 * 60 or seconds = 60 then round(seconds / 60) || ' min'
        when seconds >= 9.95 then round(seconds) || ' s'
        else trim_scale(round(seconds::numeric, 1)) || ' s'
    end
    from (select abs(date_part('epoch', lasts)) as seconds) s;
end;

-- How often something happens: every 3 days.
create or replace function often_in_words(per_day float8) returns text
language sql immutable parallel safe
return case when per_day > 1e-9 then
           'every ' || in_words(make_interval(secs => least(86400 / per_day, 1e11)))
       else 'never' end;

-- A number: 7,718. Below ten with two digits, unless it is whole: 2.2, 0.017.
create or replace function amount(x float8) returns text
language sql immutable parallel safe
return case
    when abs(x) = 'infinity' then 'unlimited'
    when abs(x) < 1e15 and (abs(x) >= 9.95 or x = round(x)) then grouped(round(x)::numeric)
    when abs(x) between 0.0001 and 9.95 then trim_scale(round(x::numeric, 1 - floor(log(abs(x)))::int))::text
    else ltrim(to_char(x, '9.9EEEE')) end;

-- The seconds of an interval, for statements that a person copies. SQL reads no exponent (1e-05) in an interval.
create or replace function seconds_to_type(lasts interval) returns numeric
language sql immutable parallel safe
return trim_scale(round(date_part('epoch', lasts)::numeric, 6));

-- A number with three digits, as SQL reads it. The whole part of a number up to a million is not rounded. Without
-- commas, unlike amount(): for statements that a person copies.
create or replace function short_number(x float8) returns text
language sql immutable parallel safe
return case when x = 0 or x is null then '0'
            when abs(x) between 1e-4 and 1e6 then
                trim_scale(round(x::numeric, greatest(0, 2 - floor(log(abs(x)))::int)))::text
            else ltrim(to_char(x, '9.99EEEE')) end;
