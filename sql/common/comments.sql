-- A column of a view means the same as the column of the same name in the table that it comes from. So a view gets the
-- comments of its tables, and comments of its own only for the columns that differ.

-- Comments a view and its columns. own: the columns with comments of their own, each as its name and its comment.
create or replace function describe_view(of_view regclass, meaning text, variadic own text[] default '{}') returns void
language plpgsql volatile as $$
declare
    c record;
begin
    execute format('comment on view %s is %L', of_view, meaning);
    for c in
        select a.attname as name, col_description(d.refobjid, d.refobjsubid) as meaning
        from pg_attribute a
        join pg_rewrite w on w.ev_class = of_view
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
        join pg_attribute s on s.attrelid = d.refobjid and s.attnum = d.refobjsubid and s.attname = a.attname
        where a.attrelid = of_view and a.attnum > 0 and col_description(d.refobjid, d.refobjsubid) is not null
        order by d.refobjid::regclass::text
    loop
        execute format('comment on column %s.%I is %L', of_view, c.name, c.meaning);
    end loop;
    for n in 1 .. cardinality(own) by 2 loop
        execute format('comment on column %s.%I is %L', of_view, own[n], own[n + 1]);
    end loop;
end $$;
