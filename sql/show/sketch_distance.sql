-- Compares min-hash sketches of recrawl.client.fingerprint. The share of equal values in two sketches estimates the
-- share of phrases that the two pages have in common.

create or replace function recrawl.sketch_distance(one int[], other int[]) returns real
language plpgsql immutable parallel safe security definer as $$
begin
    if one is null or other is null then
        return null;
    elsif sketch_values() not in (select count(v) from unnest(one) v)
          or sketch_values() not in (select count(v) from unnest(other) v) then
        perform refuse(format('sketch_distance: a sketch has %s numbers, got %s and %s', sketch_values(), one,
                              other));
    end if;
    return (select count(*) from unnest(one, other) as v (one, other) where v.one <> v.other) / sketch_values()::float8;
end $$;
comment on function recrawl.sketch_distance is
    'Estimates from two sketches how different two texts are: the share of phrases that only one text has. 0 = '
    'equal, 1 = nothing in common, null = one of the sketches is null. A sketch that does not have eight numbers '
    'raises an error.';
grant execute on function recrawl.sketch_distance to recrawl_reader;
