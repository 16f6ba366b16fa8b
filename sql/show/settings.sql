-- The settings with their units and meanings, which are the comments of the columns.

create or replace view recrawl.settings as
select a.attname::text as name,
       case when a.attname = 'budget' and s.budget_is_measured then 'measured'
            when a.atttypid = 'interval'::regtype then justify_hours((to_jsonb(s) ->> a.attname)::interval)::text
            else to_jsonb(s) ->> a.attname end as value,
       split_part(col_description(a.attrelid, a.attnum), ': ', 1) as unit,
       substr(col_description(a.attrelid, a.attnum), strpos(col_description(a.attrelid, a.attnum), ': ') + 2)
           || coalesce(': one of ' || recrawl_internal.names_allowed(a.attname || ' must be one of'), '')
           || case when a.attname = 'budget' and s.budget_is_measured
                   then format(' Measured: %s at present.', round(s.budget)) else '' end as meaning
from recrawl_internal.setting s
join pg_catalog.pg_attribute a on a.attrelid = 'recrawl_internal.setting'::regclass
where a.attnum > 0 and not a.attisdropped and a.attname not in ('only_row', 'budget_is_measured')
order by a.attnum;
comment on view recrawl.settings is 'Every setting; set_setting changes them.';
comment on column recrawl.settings.name is 'The setting.';
comment on column recrawl.settings.value is 'Its value; null = none.';
comment on column recrawl.settings.unit is 'The unit of its value.';
comment on column recrawl.settings.meaning is 'What it does.';
grant select on recrawl.settings to recrawl_reader;
