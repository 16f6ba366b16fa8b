-- set_setting: settings are the columns of one row. A constraint on the column checks the value. The name of the
-- constraint is the text of the error.

create or replace function set_setting_at(t timestamptz, name text, value text) returns void
language plpgsql volatile as $$
-- plans: lookups; writes setting, budget_step; locks setting, budget_step, page by id
declare
    type_ text;
    rule  text;
    old   setting;
    shown text;                        -- the value before, as people see it
begin
    select * into old from setting for update;
    shown := (select s.value from recrawl.settings s where s.name = set_setting_at.name);
    select c.type into type_ from setting_column c where c.name = set_setting_at.name;
    if not found then
        perform refuse(format('set_setting: there is no setting %s; the view settings lists them',
                              coalesce(quote_literal(name), 'null')));
    end if;

    if name = 'budget' then
        update setting set budget_is_measured = set_setting_at.value is not distinct from 'measured';
        delete from budget_step;
        if set_setting_at.value = 'measured' then
            -- The first measurements correct this value.
            value := coalesce(old.budget, 10000);
            insert into budget_step select c.* from crawler_counters(t) c;
        end if;
    end if;
    begin
        execute format(case type_ when 'interval' then 'update setting set %I = in_seconds($1::interval)'
                                  else 'update setting set %I = $1::%s' end, name, type_)
        using nullif(value, 'none');
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
    perform note_event(t, 'setting', s.name, format('%s → %s', coalesce(shown, 'none'), coalesce(s.value, 'none')))
    from recrawl.settings s where s.name = set_setting_at.name and s.value is distinct from shown;
    if name = 'frequency' and not has_prices() then
        -- A new frequency counts for known pages immediately, not only from their next fetch on. The pages are moved in
        -- steps, because an array of all pages could be too large.
        perform follow_frequency(t, array_agg(p.page_id))
        from (select p.page_id, row_number() over (order by p.page_id) / 100000 as step from page p
              where p.due_at > t and p.frequency is null and p.pinned_rate is null and may_come_forward(p)) p
        group by p.step
        order by p.step;
    end if;
    if name = 'default_gap' and set_setting_at.value::interval > old.default_gap then
        update setting set default_gap_since = t;
    end if;
    if name in ('budget', 'discovery') then
        -- The counts are compared with budget * days since 1970. After a change of the budget the old counts have no
        -- meaning. 0 is far too low, and near_budget() raises the counts to the right size at the next use.
        perform setval('fetch_count', 0), setval('new_count', 0);
    end if;
    perform ask_for_allocation(t);
end $$;

create or replace function recrawl.set_setting(name text, value text) returns void
language sql volatile security definer as $$
    select set_setting_at(clock_timestamp(), name, value)
$$;
comment on function recrawl.set_setting is
'Changes a setting. The view settings lists all settings with their units.

* name: the name of the setting.
* value: the new value as text. none or null removes the value of a setting that may have no value. An invalid value
  raises an error that names the valid ones.';
grant execute on function recrawl.set_setting to recrawl_operator;
