-- Samples of tables. Of a large table some blocks are read, so the cost does not grow with the table. A small table is
-- read whole.

-- The number of blocks of a table, at least one.
create or replace function blocks_of(t regclass) returns bigint
language sql volatile
return greatest(pg_relation_size(t) / current_setting('block_size')::int, 1);

-- How many percent of a table this number of blocks is. TABLESAMPLE SYSTEM takes a percentage.
create or replace function sample_percent(t regclass, blocks int) returns real
language sql volatile
return least(100, 100.0 * blocks / blocks_of(t))::real;

-- The given number of blocks of a table. first: the start of a block. past: the first row address after the block.
-- times: the number of rows that each of its rows stands for. A smaller table is one range, with times = 1. The blocks
-- are evenly spaced, and stay the same while the size of the table stays the same. So counts differ little from one
-- sample to the next, and the blocks stay in memory. TABLESAMPLE SYSTEM would read 34 or 46 blocks instead of 40.
create or replace function sampled_blocks(t regclass, blocks int, out first tid, out past tid, out times float8)
returns setof record
language plpgsql volatile as $$
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
