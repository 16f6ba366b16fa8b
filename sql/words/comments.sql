-- What a view's column means is what the column of the same name means in the table that it comes from. Files of show/
-- say so with one call, and then only what is different.

create or replace function recrawl_internal.copy_comments(of_view regclass) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
declare
    c record;
begin
    for c in
        select a.attname as name, col_description(d.refobjid, d.refobjsubid) as meaning
        from pg_attribute a
        join pg_rewrite w on w.ev_class = of_view
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
                            and d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0
        join pg_attribute s on s.attrelid = d.refobjid and s.attnum = d.refobjsubid and s.attname = a.attname
        where a.attrelid = of_view and a.attnum > 0 and col_description(d.refobjid, d.refobjsubid) is not null
        order by d.refobjid::regclass::text
    loop
        execute format('comment on column %s.%I is %L', of_view, c.name, c.meaning);
    end loop;
end $$;
comment on function recrawl_internal.copy_comments(regclass) is
    'Gives a view''s columns the comments of the columns of the same name that they come from.';
