-- Figures as people say them. Neither the session's language nor its time zone counts.

create or replace function recrawl_internal.grouped(n numeric) returns text
language sql immutable parallel safe
begin atomic
    select ltrim(to_char(n, '999,999,999,999,999,990'));
end;
comment on function recrawl_internal.grouped(numeric) is 'A whole number with commas: 1,234,567.';

create or replace function recrawl_internal.how_many(n bigint, most bigint, thing text) returns text
language sql immutable parallel safe
begin atomic
    select case when n >= most then 'more than ' else '' end
           || case n when 0 then 'no' when 1 then 'one' else recrawl_internal.grouped(n) end
           || ' ' || thing || case when n = 1 then '' when thing like '%ch' then 'es' else 's' end;
end;
comment on function recrawl_internal.how_many(bigint, bigint, text) is
    'A count of things, which ended at most of them.';

create or replace function recrawl_internal.in_words(lasts interval) returns text
language sql immutable parallel safe
begin atomic
    select case
        when seconds < 1 then 'a moment'
        when seconds < 1.5 then '1 second'
        when seconds < 90 then round(seconds) || ' seconds'
        when seconds < 90 * 60 then round(seconds / 60) || ' minutes'
        when seconds < 36 * 3600 then round(seconds / 3600) || ' hours'
        when seconds < 730 * 86400 then round(seconds / 86400) || ' days'
        else recrawl_internal.grouped(round((seconds / (365.25 * 86400))::numeric)) || ' years'
    end
    from (select abs(date_part('epoch', lasts)) as seconds) s;
end;
comment on function recrawl_internal.in_words(interval) is 'About how long something lasts: 3 minutes.';

create or replace function recrawl_internal.often_in_words(per_day float8) returns text
language sql immutable parallel safe
begin atomic
    select case when per_day > 1e-9 then
               'every ' || recrawl_internal.in_words(make_interval(secs => least(86400 / per_day, 1e11)))
           else 'never' end;
end;
comment on function recrawl_internal.often_in_words(float8) is 'How often something happens: every 3 days.';

create or replace function recrawl_internal.amount(x float8) returns text
language sql immutable parallel safe
begin atomic
    select case
        when x = 0 then '0'
        when abs(x) = 'infinity' then 'more than any number'
        when abs(x) >= 1000 and abs(x) < 1e15 then recrawl_internal.grouped(round(x::numeric))
        when abs(x) >= 0.001 and abs(x) < 1000 then
            trim_scale(round(x::numeric, greatest(0, 2 - floor(log(abs(x)))::int)))::text
        else ltrim(to_char(x, '9.99EEEE')) end;
end;
comment on function recrawl_internal.amount(float8) is 'A number to three digits.';

-- Without commas, unlike amount().
create or replace function recrawl_internal.short_number(x float8) returns text
language sql immutable parallel safe
begin atomic
    select case when x = 0 or x is null then '0'
                when abs(x) between 1e-4 and 1e6 then
                    trim_scale(round(x::numeric, greatest(0, 2 - floor(log(abs(x)))::int)))::text
                else ltrim(to_char(x, '9.99EEEE')) end;
end;
comment on function recrawl_internal.short_number(float8) is 'A number to three digits, as SQL reads it.';
