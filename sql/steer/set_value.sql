-- set_value pins a value, which otherwise comes from the graph. set_relevance pins a relevance, otherwise reported.

create or replace function recrawl.set_value(page_id bigint, value float8) returns void
language plpgsql volatile security definer as $$
-- plans: lookups; writes page; locks page
begin
    perform check_isolation('set_value');
    perform refuse('set_value: ' || why) from problem_with_amount('value', value) as why where why is not null;
    update page p set pinned_value = set_value.value where p.page_id = set_value.page_id;
    if not found then
        perform refuse(format('set_value: there is no page %s', coalesce(page_id::text, 'null')));
    end if;
    if value is null then
        perform follow_scores(array(select s from page_score s where s.page_id = set_value.page_id));
    else
        perform put_values(array[page_id], array[value::real], null);
    end if;
end $$;
comment on function recrawl.set_value is
'Pins the value of a page, before boosts. An unknown page raises an error.

* value: how much a fresh copy is worth; 1 is the average. null = the links decide again. Before the first run of the
  job opic, null leaves the value as it is.';

create or replace function recrawl.set_relevance(page_id bigint, relevance float8) returns void
language plpgsql volatile security definer as $$
-- plans: lookups; writes page; locks page
begin
    perform check_isolation('set_relevance');
    perform refuse(format('set_relevance: relevance must lie between 0 and 1, got %s', relevance))
    where not relevance between 0 and 1;
    update page p set
        pinned_relevance = case when set_relevance.relevance < least_amount() then 0 else set_relevance.relevance end
    where p.page_id = set_relevance.page_id;
    if not found then
        perform refuse(format('set_relevance: there is no page %s', coalesce(page_id::text, 'null')));
    end if;
    perform follow_scores(array(select s from page_score s where s.page_id = set_relevance.page_id));
end $$;
comment on function recrawl.set_relevance is
'Pins how well a page fits your subject. Reports no longer change it. An unknown page raises an error.

* relevance: from 0 (not at all) to 1. null = the reported relevance counts again.

The next run of the job opic computes the scores with this relevance.';
grant execute on function recrawl.set_value, recrawl.set_relevance to recrawl_operator;
