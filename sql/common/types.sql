-- Row types: rows that functions pass to each other. They hold no state: `recrawl migrate` drops a type that changed,
-- with the functions that use it, and makes all of them again.

-- Makes a row type with these columns, if it is missing.
create or replace function make_type(name text, columns text, meaning text) returns void
language plpgsql volatile as $$
begin
    if to_regtype(name) is null then
        execute format('create type %I as %s', name, columns);
    end if;
    execute format('comment on type %I is %L', name, meaning);
end $$;
