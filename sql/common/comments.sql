-- A column of a view means the same as the column of the same name in the table that it comes from. The files of show/
-- copy the comments of the tables with one call of copy_comments(), and then write comments only for the columns that
-- differ.

-- Gives the columns of a view the comments of the columns that they come from, if the names are the same.
create or replace function copy_comments(of_view regclass) returns void
language plpgsql volatile as $$
declare
    c record;
begin
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
end $$;
