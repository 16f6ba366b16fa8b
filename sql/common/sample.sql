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

-- The given number of blocks of a table, or all blocks of a smaller table. first: the start of a block. past: the first
-- row address after the block. times: the number of rows that each of its rows stands for. The blocks are evenly
-- spaced, and stay the same while the size of the table stays the same. So counts differ little from one sample to the
-- next, and the blocks stay in memory. TABLESAMPLE SYSTEM would read 34 or 46 blocks instead of 40.
create or replace function sampled_blocks(t regclass, blocks int) returns table (first tid, past tid, times float8)
language sql volatile as $$
    select format('(%s,0)', b.block)::tid, format('(%s,0)', b.block + 1)::tid, s.step
    from (select greatest(blocks_of(t) / blocks::float8, 1) as step, least(blocks, blocks_of(t)) as number) s
    cross join lateral generate_series(0, s.number - 1) as nth
    cross join lateral (select floor((nth + 0.5) * s.step)::bigint as block) b
$$;
