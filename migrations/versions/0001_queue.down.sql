-- Roles belong to the whole server and stay; so does the schema that holds alembic's own table.

drop schema recrawl cascade;

do $$
declare
    thing text;
begin
    for thing in
        select 'function ' || p.oid::regprocedure from pg_proc p where p.pronamespace = 'recrawl_internal'::regnamespace
        union all
        select case c.relkind when 'S' then 'sequence ' else 'table ' end || c.oid::regclass
        from pg_class c
        where c.relnamespace = 'recrawl_internal'::regnamespace and c.relkind in ('r', 'S') and c.relname <> 'alembic_version'
    loop
        execute 'drop ' || thing || ' cascade';
    end loop;
    for thing in
        select 'type ' || t.oid::regtype
        from pg_type t left join pg_class c on c.oid = t.typrelid
        where t.typnamespace = 'recrawl_internal'::regnamespace and (t.typtype = 'e' or c.relkind = 'c')
    loop
        execute 'drop ' || thing || ' cascade';
    end loop;
end $$;
