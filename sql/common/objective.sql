-- Computes the frequency of a page from a price: the page is fetched so often that one more fetch would gain less than
-- the price. recrawl.model.allocation.objectives is the same in Python; both agree to 1e-7.
--
-- Each objective has the form frequency = rate · G(price / weight), with its own G and its own weight (see
-- frequency_in_force). Example: with freshness, the weight is value / rate. With freshness, new_content and
-- poisson_freshness a page whose weight is at most the price is not fetched. With the others each page that changes and
-- has a value is fetched. The functions return a table of one row, so that the planner can inline them. Each «offset 0»
-- stops the planner from computing an expression again at each place that uses it. Exponents stay above -700: below,
-- exp() raises instead of returning 0.

-- Whether a page takes part in allocation. Live pages take part if they were fetched before, or if their rate is
-- pinned. Pages that keep failing, and pages that are done or declined, do not take part.
create or replace function takes_part(
    state text, attempts smallint, max_attempts int, fetched_at timestamptz, pinned_rate real, due_is text
) returns boolean
language sql immutable parallel safe
return state = 'live' and attempts < max_attempts and (fetched_at is not null or pinned_rate is not null)
       and (due_is in ('done', 'declined')) is not true;

-- Whether there is an allocation in force.
create or replace function has_prices() returns boolean
language sql stable
begin atomic
    select exists (select from host_terms where host_id = 0 and objective is not null);
end;

-- A Newton step from v towards the solution of v²/2 − (1 − (1 + v) e^−v) = share.
create or replace function age_step(v float8, share float8) returns float8
language sql immutable parallel safe
return v - (v * v / 2 - 1 + (1 + v) * exp(-least(v, 700)) - share) / (v * (1 - exp(-least(v, 700))));

-- Fetches per day of a page with a value and a rate (changes per day), by the terms of its host and the common terms.
-- Without a price the function returns no row. There is no price before the first allocation. If the budget is more
-- than all pages can take, the common terms have no price. Then a host that took no part in the last allocation has
-- none.
--
-- The queries are nested. Read them from the inside: the terms; the weight, and the price as `asked` (at least 1e-100,
-- at most 1e100); share = asked / weight; then u or v, below.
create or replace function frequency_in_force(
    own host_terms, common host_terms, highest float8, page_value float8, rate float8
) returns table (frequency float8)
language sql immutable parallel safe rows 1
begin atomic
    select least(highest, greatest(min_frequency, case
        when weight between price * (1 - 3e-10) and price * (1 + 3e-10) and ties is not null then rate * ties
        when weight is null
             or (weight <= price and objective in ('freshness', 'new_content', 'poisson_freshness')) then 0
        when objective in ('freshness', 'new_content') then rate / u
        when objective = 'poisson_freshness' then rate * (weight - asked) / asked / (sqrt(weight / asked) + 1)
        when objective = 'harmonic' then rate * 2 / share / (sqrt(1 + 4 / share) + 1)
        when objective = 'delay' then rate / sqrt(share)
        when objective = 'age' then rate / v
        when objective = 'proportional' then rate / share
    end))
    from (select price, ties, min_frequency, objective, weight, asked, asked / weight as share
          from (select price, ties, min_frequency, objective,
                       greatest(least(price, 1e100), 1e-100) as asked,
                       case when page_value > 0 and rate > 0 then
                           case objective
                               when 'new_content' then page_value
                               when 'proportional' then 1
                               when 'age' then page_value / rate / rate
                               else page_value / rate
                           end
                       end as weight
                -- The terms of the host itself, otherwise the common terms. A page whose weight equals
                -- the price is fetched rate × ties times a day. `ties` is valid only with the price of its own row.
                from (select coalesce((own).price, (common).price) as price,
                             case when (own).price is null then (common).ties else (own).ties end as ties,
                             coalesce((own).min_frequency, (common).min_frequency) as min_frequency,
                             (common).objective as objective
                      offset 0) terms
                where price is not null
                offset 0) w
          offset 0) s
    -- u = the changes expected between two fetches, where 1 − (1 + u) e^−u = share. First a closed approximation (error
    -- 2.6e-4), then one Newton step on the logarithm of 1 − share (error 1.6e-8). A step on share itself would be
    -- useless if share is close to 1: then 1 − share has hardly any digits left.
    left join lateral (
        select case when share < 1e-5 then sqrt(2 * share) * (1 + sqrt(2 * share) / 3 + 11 * share / 36)
                    else rough - (ln(1 + rough) - rough - ln_rest) * (1 + rough) / -rough end as u
        from (select ln_rest,
                     -ln_rest + 5.9506099375 * (1 - 1 / (
                         1 + 0.3361 * sqrt(-0.5 * ln_rest) / (1 + 0.0042 * ln_rest * exp(-0.0201 * sqrt(-ln_rest)))
                     )) as rough
              from (select ln((weight - price) / weight) as ln_rest
                    where objective in ('freshness', 'new_content') and weight > price offset 0) l
              offset 0) r
        offset 0) fresh on true
    -- v = the same for the objective age: v² / 2 − 1 + (1 + v) e^−v = share. Three Newton steps (error 1.3e-8).
    left join lateral (
        select case when share < 1e-7 then cbrt(3 * share) * (1 + cbrt(3 * share) / 8 + 13 * cbrt(3 * share) ^ 2 / 960)
                    else age_step(v2, share) end as v
        from (select age_step(v1, share) as v2
              from (select age_step(v0, share) as v1
                    from (select sqrt(cbrt(3 * greatest(share, 1e-7)) ^ 2 + 2 * share) as v0
                          where objective = 'age' and weight is not null offset 0) s0
                    offset 0) s1
              offset 0) s2
        offset 0) young on true;
end;

-- Fetches per day of a page: by its pinned interval, otherwise by its value and rate and the terms of its host. null =
-- neither an interval nor a price: page_frequency() decides until there is a price. If the slots of a host or the
-- budget are too few for all pinned intervals, each pinned page gets the same share of its frequency.
create or replace function frequency_of(
    pinned_interval interval, own host_terms, common host_terms, highest float8, page_value float8, rate float8
) returns table (frequency float8)
language sql immutable parallel safe rows 1
begin atomic
    select case when pinned_interval is null then f.frequency
                else least(highest, times_per_day(pinned_interval)
                                    * coalesce((own).pins_kept, (common).pins_kept, 1)) end
    from (values (true)) as page (is_there)
    left join lateral frequency_in_force(own, common, highest, page_value, rate) f on pinned_interval is null;
end;
