-- set_interval: pins the time between two fetches of a page, independently of its value. The new interval counts
-- immediately. The next allocation, which comes soon, subtracts the fetches of pinned pages from the budget and from
-- the slots of their hosts.

-- The reason why no page of a host can be fetched at this interval; null if that is possible.
create or replace function problem_with_interval(every interval, h host, s setting) returns text
language sql stable as $$
    select case
        when every < slot_every(h, s) then
            format('every must be at least %s, the time between two slots of %s, got %s',
                   slot_every(h, s), h.name, every)
        when every < s.shortest_interval then
            format('every must be at least %s, as the setting shortest_interval says, got %s',
                   s.shortest_interval, every)
    end
$$;

create or replace function set_interval_at(t timestamptz, page_ids bigint[], every interval)
returns setof recrawl.steered_page
language plpgsql volatile as $$
-- plans: hashes; writes page; locks page by id
declare
    s       setting;
    answers recrawl.steered_page[];
    steered bigint[];                  -- pages that get the interval
    waiting bigint[];                  -- pages among them that have no due time or are never due
begin
    perform refuse(format('set_interval: every must lie between 1 second and 10 years, got %s', every))
    where in_seconds(every) not between interval '1 second' and interval '87660 hours';
    every := in_seconds(every);
    select * into s from setting;
    with
    -- The pages that exist, each with its problem if it has one.
    found as materialized (
        select p.page_id, p.state, p.due_at, problem_with_interval(set_interval_at.every, h, s) as problem
        from (select distinct unnest(set_interval_at.page_ids) as page_id) w
        join page p on p.page_id = w.page_id
        join host h on h.host_id = p.host_id
        order by p.page_id
        for update of p
    ),
    -- A page without a frequency follows the setting `frequency` until its host has a price. Pages that are not live
    -- get the interval too, because they may become live again. Pages that are kept_out do not.
    written as (
        update page p set
            pinned_interval = set_interval_at.every,
            frequency = case when set_interval_at.every is not null
                             then clamped_frequency(times_per_day(set_interval_at.every)) end
        from found f
        where p.page_id = f.page_id and f.problem is null and f.state <> 'kept_out'
    )
    select array_agg((w.ord, w.page_id,
                      case when f.page_id is null then 'unknown_page'
                           when f.problem is not null then 'invalid'
                           when f.state <> 'live' then 'not_live'
                           else 'ok' end,
                      case when f.page_id is null then format('there is no page %s', coalesce(w.page_id::text, 'null'))
                           when f.problem is not null then f.problem
                           when f.state <> 'live' then format('it is %s: nothing fetches it', f.state)
                      end)::recrawl.steered_page order by w.ord),
           array_agg(distinct f.page_id) filter (where f.problem is null and f.state = 'live'),
           array_agg(distinct f.page_id) filter (
               where f.problem is null and f.state = 'live' and (f.due_at is null or is_never(f.due_at)))
    into answers, steered, waiting
    from unnest(set_interval_at.page_ids) with ordinality as w (page_id, ord)
    left join found f on f.page_id = w.page_id;

    if steered is not null then
        perform follow_interval(t, steered);
        if every is not null and waiting is not null then
            perform fetch_now_at(t, waiting);
        end if;
        perform note_event(t, 'pages', format('%s pages', cardinality(steered)),
                           coalesce('pinned to be fetched every ' || justify_hours(every),
                                    'fetched as often as they are worth again')),
                ask_for_allocation(t);
    end if;
    return query select a.* from unnest(answers) a;
end $$;

-- Moves pages to the due times of the frequency that is in force now, counted from the last fetch. Pages that are late
-- by the new interval become due within a second. A page keeps its due time if a failure, robots.txt, a crawler (`due`)
-- or a person (fetch_now) set it. A page that is due earlier because of a hint does not become due later.
create or replace function follow_interval(t timestamptz, page_ids bigint[]) returns void
language plpgsql volatile as $$
-- plans: lookups; writes page; locks nothing: the caller holds the pages
declare
    known       bigint[];
    frequencies real[];
begin
    select array_agg(v.page_id order by v.page_id), array_agg(v.frequency order by v.page_id) into known, frequencies
    from unnest(page_ids) as w (page_id)
    cross join lateral (
        select v.page_id, clamped_frequency(v.frequency) as frequency from recrawl.page_status v
        where v.page_id = w.page_id and v.frequency is not null
        offset 0
    ) v;
    perform put_dues_at(t, known, frequencies, 1 / 86400.0);       -- late pages: within a second
    update page p
    set frequency = case when p.pinned_interval is not null or (select has_prices()) then n.frequency end
    from unnest(known, frequencies) as n (page_id, frequency)
    where p.page_id = n.page_id;
end $$;

create or replace function recrawl.set_interval(page_ids bigint[], every interval) returns setof recrawl.steered_page
language sql volatile security definer as $$
    select check_isolation('set_interval');
    select * from set_interval_at(clock_timestamp(), page_ids, every)
$$;
comment on function recrawl.set_interval is
'Pins pages: sets the time between two fetches of each. Then the value of a page has no effect on this time. Returns one
row for each page, in the same order. code is ok, unknown_page, not_live or invalid. not_live: recrawl does not
fetch the page now. It stores the interval, except for a page that is kept_out.

* every: the time between two fetches, from 1 second to 10 years. null = recrawl decides again. code is invalid if the
  time is shorter than the setting shortest_interval or than the time between two slots of the host.

The new interval counts immediately. A page that waits among the new pages, or is done or declined, is due now. The next
allocation first subtracts the fetches for pinned intervals from the budget and from the slots of the host. Then it
divides the rest. Pinned intervals cannot use the parts of the budget that the settings discovery and exploration
reserve.';
grant execute on function recrawl.set_interval to recrawl_operator;
