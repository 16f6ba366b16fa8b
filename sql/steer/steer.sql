-- Functions that several functions of an operator use.

-- Marks that a person changed something that the allocation depends on: the budget, a setting or the gap of a host, for
-- example. Then the next allocation runs soon, not an hour later. The mark is visible before the transaction commits.
-- Therefore why_allocate_early() waits 5 seconds after it.
create or replace function ask_for_allocation(t timestamptz) returns void
language sql volatile as $$
    select setval('steered', micros(t))
$$;

-- Moves pages to the due times of the frequency that is in force now, counted from the last fetch. Pages that are late
-- by the new frequency become due within a second. A page keeps its due time if a failure, robots.txt, a crawler
-- (`due`) or a person (fetch_now) set it. A page that is due earlier because of a hint does not become due later.
create or replace function follow_frequency(t timestamptz, page_ids bigint[]) returns void
language plpgsql volatile as $$
-- plans: lookups; writes page; locks page by id
declare
    known       bigint[];
    frequencies real[];
begin
    perform from page p where p.page_id = any (page_ids) order by p.page_id for update;
    select array_agg(v.page_id order by v.page_id), array_agg(v.frequency order by v.page_id) into known, frequencies
    from unnest(page_ids) as w (page_id)
    cross join lateral (
        select v.page_id, page_frequency(v.frequency, null, null) as frequency from recrawl.page_status v
        where v.page_id = w.page_id and v.frequency is not null
        offset 0
    ) v;
    perform put_dues_at(t, known, frequencies, 1 / 86400.0);       -- late pages: within a second
    update page p
    set frequency = case when p.pinned_interval is not null or (select has_prices()) then n.frequency end
    from unnest(known, frequencies) as n (page_id, frequency)
    where p.page_id = n.page_id;
end $$;
