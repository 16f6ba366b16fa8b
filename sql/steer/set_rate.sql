-- set_rate: pins the rate of a page, which is otherwise estimated.

create or replace function set_rate_at(t timestamptz, page_id bigint, rate float8) returns void
language plpgsql volatile as $$
-- plans: lookups; writes page; locks page
declare
    frequency float8;
begin
    perform refuse('set_rate: ' || why) from problem_with_amount('rate', rate) as why where why is not null;
    update page p set pinned_rate = set_rate_at.rate where p.page_id = set_rate_at.page_id;
    if not found then
        perform refuse(format('set_rate: there is no page %s', coalesce(page_id::text, 'null')));
    end if;
    -- The price of the host gives the new frequency immediately.
    select s.frequency into frequency from recrawl.page_status s where s.page_id = set_rate_at.page_id;
    if frequency is not null and has_prices() then
        perform bring_forward_at(t, array[page_id], array[clamped_frequency(frequency)]);
    end if;
end $$;

create or replace function recrawl.set_rate(page_id bigint, rate float8) returns void
language sql volatile security definer as $$
    select check_isolation('set_rate');
    select set_rate_at(clock_timestamp(), page_id, rate)
$$;
comment on function recrawl.set_rate is
'Pins how often a page changes. An unknown page raises an error.

* rate: changes per day. null = recrawl learns the rate again.';
grant execute on function recrawl.set_rate to recrawl_operator;
