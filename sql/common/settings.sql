-- The settings are the columns of one row. Four of its columns are no settings: set_setting() cannot set them.

create or replace view setting_column as
select a.attnum as place,
       a.attname::text as name,
       format_type(a.atttypid, a.atttypmod) as type,
       to_jsonb(s) -> a.attname as value,
       col_description(a.attrelid, a.attnum) as says,
       case when a.atttypid = 'interval'::regtype
            then to_jsonb(extract(epoch from (to_jsonb(s) ->> a.attname)::interval) / 86400)
            else to_jsonb(s) -> a.attname end as typed
from setting s
join pg_catalog.pg_attribute a on a.attrelid = 'recrawl_internal.setting'::regclass
where a.attnum > 0 and not a.attisdropped
  and a.attname not in ('only_row', 'budget_is_measured', 'full_logins');
comment on view setting_column is
    'The settings in their order. A value that is not set is null in JSON; `says` has the form «unit: meaning». '
    'typed: the value for the worker, which reads intervals in days.';
grant select on setting_column to recrawl_worker;

-- The names that a constraint of the table setting lists, for constraints whose name ends with «must be one of».
create or replace function names_allowed(rule text) returns text
language sql stable security definer as $$
    select string_agg(m[1], ', ')
    from pg_constraint c, regexp_matches(pg_get_constraintdef(c.oid), '''(\w+)''', 'g') as m
    where c.conrelid = 'setting'::regclass and c.conname = rule
$$;
