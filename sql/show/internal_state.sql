-- internal_state: the numbers that recrawl keeps in sequences, for people who look for a fault. Their meaning is in
-- their comments (migrations/versions/). A function reads them, because the role recrawl_reader may not.

-- The sequences that are variables, each with its value and with the meaning from its comment.
create or replace function cells() returns table (name text, value bigint, as_time timestamptz, meaning text)
language sql stable security definer as $$
    select c.relname, v.value, case when m.parts[1] = 'time' then from_micros(v.value) end, m.parts[2]
    from pg_class c
    -- A standby cannot read an unlogged sequence.
    cross join lateral (
        select case when c.relpersistence <> 'u' or not pg_is_in_recovery() then pg_sequence_last_value(c.oid) end
    ) as v (value)
    cross join lateral regexp_match(obj_description(c.oid, 'pg_class'), '^(time|count|bits): (.*)$') as m (parts)
    where c.relnamespace = 'recrawl_internal'::regnamespace and c.relkind = 'S' and m.parts is not null
$$;

create or replace view recrawl.internal_state as
select c.name, c.value, c.as_time, c.meaning
from cells() c
order by length(c.name), c.name;
select describe_view('recrawl.internal_state',
    'The numbers that recrawl keeps in sequences: counters, and times such as the last upkeep.',
    'name', 'The name of the sequence in the schema recrawl_internal.',
    'value', 'The number: a count, microseconds since 1970, or one bit for each class (a group of new pages with '
        'similar values). null = it was never written.',
    'as_time', 'The number as a time; null = it is not a time.',
    'meaning', 'The meaning of the number, its writers, and the effect of a wrong value.');
