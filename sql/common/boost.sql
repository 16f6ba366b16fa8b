-- Boosts multiply the values of pages whose URL matches a pattern. The row of a page stores the product of its boosts.
-- So its value without boosts can be computed, and jobs and reports need not match URLs.

-- The value of a page with its boosts, given its value without them and their product; null = no boost.
create or replace function boosted(plain_value float8, boost real) returns real
language sql immutable parallel safe
return case when boost is not null and plain_value > 0
            then greatest(least(plain_value * boost, most_amount()), least_amount())
            else plain_value end::real;

-- The value of a page without its boosts.
create or replace function plain_value(value float8, boost real, pinned_value real) returns float8
language sql immutable parallel safe
return coalesce(pinned_value, value / coalesce(boost, 1));

-- The product of the boosts whose patterns match a canonical URL; null = no boost. Returns a table of one row, so that
-- the planner can inline it. The sum of the logarithms is kept between -69 and 69, so that the product stays between
-- 1e-30 and 1e30.
create or replace function boost_of(canonical text) returns table (boost real)
language sql stable rows 1
begin atomic
    select case when count(*) > 0 then
               nullif(exp(greatest(least(sum(ln(b.factor::float8)), 69), -69))::real, 1) end
    from boost b
    where b.factor is not null and canonical ~ b.pattern;
end;
