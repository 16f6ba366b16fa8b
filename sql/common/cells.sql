-- Converts times to the numbers that cells (sequences that hold a number or a time) store, and back. The view
-- internal_state lists the cells.

-- A time as a number that a sequence can store: microseconds since 1970.
create or replace function micros(t timestamptz) returns bigint
language sql stable parallel safe      -- like extract()
return greatest(1, least((extract(epoch from t) * 1000000)::numeric, 9e18)::bigint);

-- The time that a sequence stores.
create or replace function from_micros(micros bigint) returns timestamptz
language sql stable parallel safe
return timestamptz 'epoch' + micros * interval '1 microsecond';
