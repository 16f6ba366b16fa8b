-- settings: the settings with their units and meanings, which come from the comments of the columns. The collation must
-- stay as it is, because `create or replace view` cannot change the collation of a column.

create or replace view recrawl.settings as
select c.name,
       (case when m.is_measured then 'measured'
             when c.type = 'interval' then justify_hours((c.value #>> '{}')::interval)::text
             else c.value #>> '{}' end) collate "C" as value,
       split_part(c.says, ': ', 1) as unit,
       substr(c.says, strpos(c.says, ': ') + 2)
           || coalesce(case when c.says like '%.' then ' One of ' else ': one of ' end
                       || names_allowed(c.name || ' must be one of'), '')
           || case when m.is_measured then format(' Measured: %s at present.', round(s.budget)) else '' end as meaning
from setting s
cross join setting_column c
cross join lateral (select c.name = 'budget' and s.budget_is_measured as is_measured) m
order by c.place;
select describe_view('recrawl.settings',
    'One row for each setting. set_setting changes a setting.',
    'name', 'The name of the setting.',
    'value', 'The value as text; null = it has no value.',
    'unit', 'The unit of the value.',
    'meaning', 'The effect of the setting.');
