-- Settings are the columns of one row; what a value may be is a constraint of its column, whose name is the error.

create or replace function recrawl_internal.names_allowed(rule text) returns text
language sql stable security definer
set search_path = recrawl_internal, pg_temp
as $$
    select string_agg(m[1], ', ')
    from pg_constraint c, regexp_matches(pg_get_constraintdef(c.oid), '''(\w+)''', 'g') as m
    where c.conrelid = 'setting'::regclass and c.conname = rule
$$;
comment on function recrawl_internal.names_allowed(text) is
    'The names that a constraint of the table setting lists, for those that end with «must be one of».';
grant execute on function recrawl_internal.names_allowed to recrawl_reader;

create or replace function recrawl.set_setting(name text, value text) returns void
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
declare
    type_ text;
    rule  text;
begin
    select format_type(a.atttypid, a.atttypmod) into type_
    from pg_attribute a
    where a.attrelid = 'setting'::regclass and a.attnum > 0 and not a.attisdropped
      and a.attname = set_setting.name and a.attname <> 'only_row';
    if not found then
        perform refuse(format('set_setting: there is no setting %s; the view settings lists them',
                              coalesce(quote_literal(name), 'null')));
    end if;

    begin
        execute format('update setting set %I = $1::%s', name, type_) using nullif(value, 'none');
    exception
        when check_violation then
            get stacked diagnostics rule = constraint_name;
            if rule like '%must be one of' then
                rule := rule || ' ' || names_allowed(rule);
            end if;
            perform refuse(format('set_setting: %s, got %s', rule, value));
        when not_null_violation then
            perform refuse(format('set_setting: %s must have a value', name));
        when data_exception then
            perform refuse(format('set_setting: %s must be of type %s, got %s', name, type_, value));
    end;
    if name in ('budget', 'discovery') then
        -- The counts stand beside what the setting comes to since 1970: near() brings them up.
        perform setval('fetch_count', 0), setval('new_count', 0);
    end if;
end $$;
comment on function recrawl.set_setting(text, text) is
    'Changes a setting; none empties one that may be empty. The view settings lists them.';
grant execute on function recrawl.set_setting to recrawl_operator;
