-- Of large tables some blocks are looked at, at a cost that does not grow with them; small ones are read whole.

create or replace function recrawl_internal.blocks_of(t regclass) returns bigint
language sql volatile
begin atomic
    select greatest(pg_relation_size(t) / current_setting('block_size')::int, 1);
end;
comment on function recrawl_internal.blocks_of(regclass) is 'How many blocks a table has; at least one.';

create or replace function recrawl_internal.sample_percent(t regclass, blocks int) returns real
language sql volatile
begin atomic
    select least(100, 100.0 * blocks / recrawl_internal.blocks_of(t))::real;
end;
comment on function recrawl_internal.sample_percent(regclass, int) is
    'Of a table, the percentage that as many blocks are; for TABLESAMPLE SYSTEM.';

-- Evenly spaced, and the same ones as long as the table has its size: what is counted in them differs little from look
-- to look, and they stay in memory. TABLESAMPLE SYSTEM finds at one time 34 of 40 blocks and at another 46.
create or replace function recrawl_internal.sampled_blocks(
    t regclass, blocks int, out first tid, out past tid, out times float8
)
returns setof record
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
declare
    total constant bigint := blocks_of(t);
    step  constant float8 := total / blocks::float8;
    block bigint;
begin
    if total <= blocks then
        return query select tid '(0,0)', tid '(4294967295,0)', 1::float8;
        return;
    end if;
    for n in 0 .. blocks - 1 loop
        block := floor((n + 0.5) * step);
        return query select format('(%s,0)', block)::tid, format('(%s,0)', block + 1)::tid, step;
    end loop;
end $$;
comment on function recrawl_internal.sampled_blocks(regclass, int) is
    'Of a table, so many blocks, or all: where each begins, what lies past it, and how many blocks it stands for.';
