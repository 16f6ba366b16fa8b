-- The settings as the worker reads them, with one query: numbers as numbers, intervals in days.

create or replace view recrawl_internal.typed_setting as
select c.name,
       case when c.type = 'interval' then to_jsonb(extract(epoch from (c.value #>> '{}')::interval) / 86400)
            else c.value
       end as value
from recrawl_internal.setting_column c;
comment on view recrawl_internal.typed_setting is
    'Every setting as a number, a text or a boolean; null = it has no value.';
grant select on recrawl_internal.typed_setting to recrawl_worker;
