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
