-- The settings as the worker reads them, with one query: numbers as numbers, intervals in days.

create or replace view typed_setting as
select c.name,
       case when c.type = 'interval' then to_jsonb(extract(epoch from (c.value #>> '{}')::interval) / 86400)
            else c.value
       end as value
from setting_column c;
comment on view typed_setting is 'Every setting as a number, a text or a boolean; null = it has no value.';
grant select on typed_setting to recrawl_worker;
