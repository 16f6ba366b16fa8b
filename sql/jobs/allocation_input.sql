-- The input of the job allocate: pages, hosts, new pages, and the fetches of the last day.

-- The job reads millions of these rows. So the view uses single columns of host_terms: with whole rows of it, and with
-- more joins with tables of one row, it took 1.4 times the CPU time.
create or replace view page_to_allocate as
select p.page_id, p.host_id, p.value, b.rate,
       coalesce(date_part('epoch', p.due_at) / 86400, 'NaN')::float8 as due_on,
       case when due_follows_frequency(p) then date_part('epoch', p.due_at - p.fetched_at) / 86400
            else 'NaN' end::real as planned_interval,
       coalesce(times_per_day(p.pinned_interval), 'NaN')::real as pinned
from page p
join host_terms common on common.host_id = 0
left join host_terms own on own.host_id = p.host_id
cross join lateral belief_on(
    coalesce(own.prior_changes, common.prior_changes), coalesce(own.prior_days, common.prior_days),
    p.pinned_rate, p.seen_changes, p.seen_days
) b
where takes_part(
    p.state, p.attempts, (select s.max_attempts from setting s),
    p.fetched_at, p.pinned_rate, p.due_is);
comment on view page_to_allocate is
    'The columns of each page that takes part in allocation. rate: changes per day. due_on: days since 1970. '
    'planned_interval: days from the last fetch to the due time, NaN = the due time does not follow from the frequency '
    'alone (see due_follows_frequency). pinned: fetches per day, NaN = no pinned interval.';

-- to_make_up: how many fetches the crawl lacks since the first allocation of the last 24.5 hours; negative = it fetched
-- too much. days: the days since that allocation. since_last: the days since the last one. The time covers a whole day,
-- because crawlers that pause every night make up in the morning for the fetches that they left. The budget is added up
-- run by run, because it may have changed. Example: the budget was lowered from 100 to 50. Then between 50 and 100
-- fetches are neither too few nor too many.
create or replace function fetches_of_last_day(t timestamptz)
returns table (days float8, to_make_up float8, since_last float8)
language sql stable security definer as $$
-- plans: whole
    with
    -- The allocations, each with the days until the next one.
    runs as (
        select a.started_at, a.budget, a.handed_out,
               date_part('epoch', coalesce(lead(a.started_at) over (order by a.started_at), t) - a.started_at) / 86400
                   as days
        from allocation a
        where a.started_at between t - interval '24.5 hours' and t and a.handed_out is not null
    ),
    -- Without an allocation all numbers are 0, and since_last is one hour.
    sums as (
        select coalesce(sum(r.days), 0) as days,
               coalesce(sum(r.days * r.budget), 0) as by_budget_then,
               coalesce(sum(r.days * least(r.budget, (select s.budget from setting s))), 0) as by_budget_now,
               coalesce((select c.last_value from handed_out_count c) - min(r.handed_out), 0) as handed_out,
               coalesce((array_agg(r.days order by r.started_at desc))[1], 1 / 24.0) as since_last
        from runs r
    )
    select days, greatest(by_budget_now - handed_out, 0) + least(by_budget_then - handed_out, 0), since_last from sums
$$;

-- Retries per day in the last 24 hours. Retries of failing pages are fetches in addition to the planned ones.
create or replace function retries_per_day(t timestamptz) returns float8
language sql stable security definer as $$
-- plans: whole
    select coalesce(sum(retries), 0) / greatest(date_part('epoch', t - min(at)) / 86400, 1 / 24.0)
    from vital_hour
    where at between t - interval '24 hours' and t
$$;

-- The token of the first allocation after the last change of the policy; null = the next is the first.
create or replace function first_of_policy() returns bigint
language sql stable as $$
-- plans: whole
    -- The subqueries are run once. A join with the setting would be evaluated again for each of ten thousand runs.
    select min(a.token) from allocation a
    where a.token > coalesce((select max(other.token) from allocation other
                              where other.policy <> (select s.policy from setting s)), 0)
$$;

-- The days since the first allocation after the last change of the policy; 0 = the next allocation is the first.
create or replace function policy_days(t timestamptz) returns float8
language sql stable security definer as $$
-- plans: lookups
    select coalesce((select date_part('epoch', t - a.started_at) / 86400
                     from allocation a where a.token = first_of_policy()), 0)
$$;

-- The new pages by host and class of value, the best classes first. waiting: the pages that wait. pages: those that
-- wait, plus those found per day since an earlier run. That is the newest run that is at least six hours old, otherwise
-- the oldest run that is at least one hour old. Without such a run only waiting pages count. Page ids are given to new
-- pages only, so the pages with an id above the newest_page of that run were found since. New pages with a pinned rate
-- are not counted, because they take part in allocation already.
create or replace function new_pages_to_allocate(t timestamptz)
returns table (host_id bigint, value_class int, pages float8, waiting float8)
language sql stable security definer as $$
-- plans: whole
    -- The run since which found pages are counted.
    with before as (
        (select a.newest_page, date_part('epoch', t - a.started_at) / 86400 as days
         from allocation a
         where a.newest_page is not null and a.started_at <= t - interval '6 hours'
         order by a.started_at desc limit 1)
        union all
        (select a.newest_page, date_part('epoch', t - a.started_at) / 86400
         from allocation a
         where a.newest_page is not null and a.started_at <= t - interval '1 hour'
         order by a.started_at limit 1)
        limit 1
    ),
    -- Waiting pages, and found pages per day, by host and class.
    of_class as (
        select w.host_id, value_class(w.rank) as value_class, count(*) as pages, count(*) as waiting
        from new_page w
        where not exists (select from page p where p.page_id = w.page_id and p.pinned_rate is not null)
        group by w.host_id, value_class(w.rank)
        union all
        select p.host_id, value_class(-p.value), sum(1 / b.days), 0
        from before b
        join page p on p.page_id > b.newest_page
        where p.pinned_rate is null
        group by p.host_id, value_class(-p.value)
    )
    select c.host_id, c.value_class::int, sum(c.pages)::float8, sum(c.waiting)::float8
    from of_class c
    group by c.host_id, c.value_class
    order by c.value_class, c.host_id
$$;

-- The number of slots per day of a host with this gap.
create or replace function slots_per_day(gap interval, window_share real) returns float8
language sql immutable parallel safe
return 86400 / date_part('epoch', gap + start_window(gap, window_share));

create or replace view host_to_allocate as
select h.host_id, h.name,
       slots_per_day(g.gap, s.window_share) as cap,
       slots_per_day(g.gap / 2, s.window_share) as cap_with_half_the_gap,
       -- -infinity = the host was never blocked, or its block was ended by hand.
       coalesce(date_part('epoch', h.blocked_until) / 86400, '-infinity')::float8 as blocked_until
from host h
cross join setting s
cross join lateral (select gap_of(h, s) as gap) g;
comment on view host_to_allocate is
    'The columns of each host that allocation reads. cap: slots per day; cap_with_half_the_gap: slots per day if its '
    'gap were half; blocked_until: in days since 1970.';

grant execute on function fetches_of_last_day, retries_per_day, policy_days, new_pages_to_allocate to recrawl_worker;
grant select on page_to_allocate, host_to_allocate to recrawl_worker;
