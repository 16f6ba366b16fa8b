-- set_setting: settings are the columns of one row. A constraint on the column checks the value. The name of the
-- constraint is the text of the error.

-- Moves the due times of pages that follow the setting frequency, after the setting changed. A new frequency counts for
-- known pages immediately, not only from their next fetch on. Pages that are late by the new frequency become due now,
-- a microsecond apart, because a row of the queue is found by its due time.
create or replace function follow_frequency(t timestamptz, before real, after real) returns void
language sql volatile as $$
-- plans: whole; writes page, inbox; locks page by id
    with
    -- The pages that follow the setting, with their new due times. A page with a hint does not become due later.
    wanted as materialized (
        select * from (
            select p.page_id, p.host_id, p.due_at, p.planned_due,
                   greatest(coalesce(p.planned_due, p.due_at)
                                + (1 / clamped_frequency(after) - 1 / clamped_frequency(before))
                                  * interval '24 hours',
                            p.fetched_at + s.shortest_interval,
                            t + row_number() over (order by p.page_id) * interval '1 microsecond') as new_due
            from (select p.* from page p
                  where p.due_at > t and p.frequency is null and p.pinned_rate is null and may_become_due_earlier(p)
                  order by p.page_id
                  for update) p
            cross join setting s
        ) w
        where planned_due is null or new_due < due_at
    ),
    due as (update page p set due_at = w.new_due, planned_due = null from wanted w where p.page_id = w.page_id)
    insert into inbox (host_id, page_id, old_due) select host_id, page_id, due_at from wanted
$$;

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
        perform follow_frequency(t, old.frequency, set_setting_at.value::real);
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
