-- The settings as the worker reads them, in one go: numbers as numbers, intervals in days.

create or replace view recrawl_internal.typed_setting as
select a.attname::text as name,
       case when a.atttypid = 'interval'::regtype
            then to_jsonb(extract(epoch from (to_jsonb(s) ->> a.attname)::interval) / 86400)
            else to_jsonb(s) -> a.attname
       end as value
from recrawl_internal.setting s
join pg_catalog.pg_attribute a on a.attrelid = 'recrawl_internal.setting'::regclass
where a.attnum > 0 and not a.attisdropped and a.attname not in ('only_row', 'budget_is_measured');
comment on view recrawl_internal.typed_setting is 'Every setting: a number, a text, a truth value, or null for none.';
grant select on recrawl_internal.typed_setting to recrawl_worker;
