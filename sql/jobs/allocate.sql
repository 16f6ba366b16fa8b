-- The job allocate: the pages and hosts that it reads, the prices that it stores, and the due times that it moves to
-- the new frequencies.

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

-- Stores an allocation: the terms of each host that took part, and the common terms as host 0.
--
-- All hosts are written in one transaction. Until it commits, and if it fails, the last result stays in force. The job
-- rates writes the same rows, and the two jobs may lock them in different orders, which would be a deadlock. So each
-- job locks the table, and one waits for the other. Readers do not wait.
--
-- NaN is stored as null. In the row of a host, null means that the term of host 0 holds (for ties: only if the price of
-- host 0 holds too). In the row of host 0 it means that there is no such term. Rows that do not change are not written.
-- ON CONFLICT would lock every row, and a lock is a write. The frequency of a host is only shown, so
-- a change of less than a thousandth alone is not written.
create or replace function put_prices(
    token bigint, alive_for interval, run jsonb, host_ids bigint[], prices float8[], ties float8[],
    min_frequencies float8[], capped boolean[], frequencies float8[], pins_kept float8[]
) returns void
language plpgsql volatile security definer as $$
-- plans: whole; writes host_terms, allocation; locks job, host_terms
begin
    perform keep_job(token, alive_for);
    lock table host_terms in share row exclusive mode;
    merge into host_terms h
    using (select n.host_id, nullif(n.price, 'NaN') as price, nullif(n.tied, 'NaN') as ties,
                  nullif(n.min_frequency, 'NaN') as min_frequency, n.is_capped, nullif(n.frequency, 'NaN') as frequency,
                  nullif(n.pins_kept, 'NaN') as pins_kept
           from unnest(host_ids, prices, put_prices.ties, min_frequencies, capped, frequencies, put_prices.pins_kept)
                as n (host_id, price, tied, min_frequency, is_capped, frequency, pins_kept)) f on f.host_id = h.host_id
    when matched and ((h.price, h.ties, h.min_frequency, h.is_capped, h.pins_kept)
                      is distinct from (f.price, f.ties, f.min_frequency, f.is_capped, f.pins_kept)
                      or (abs(h.frequency - f.frequency) <= 0.001 * h.frequency) is not true) then
        update set price = f.price, ties = f.ties, min_frequency = f.min_frequency, is_capped = f.is_capped,
                   frequency = f.frequency, pins_kept = f.pins_kept
    when not matched then
        insert (host_id, price, ties, min_frequency, is_capped, frequency, pins_kept)
        values (f.host_id, f.price, f.ties, f.min_frequency, f.is_capped, f.frequency, f.pins_kept);
    -- Hosts that no longer take part get the same row as hosts that never did. With NOT IN, which is not hashed if the
    -- list needs more than twice work_mem, this compared each of 600,000 hosts with all others and did not end.
    update host_terms h
    set price = null, ties = null, min_frequency = null, is_capped = null, frequency = null, pins_kept = null
    where h.is_capped is not null
          and not exists (select from unnest(host_ids) as n (host_id) where n.host_id = h.host_id);
    update host_terms set objective = run ->> 'priced_by'
    where host_id = 0 and objective is distinct from run ->> 'priced_by';
    insert into allocation
    select (jsonb_populate_record(null::allocation, run || jsonb_build_object(
        'token', put_prices.token, 'started_at', (select started_at from job j where j.token = put_prices.token),
        'handed_out', (select last_value from handed_out_count)))).*;
end $$;

-- Brings forward the pages that are due more than one new interval from now. Returns their number. New prices change
-- the frequencies immediately, but without this function the due time of a page would usually change only with its next
-- fetch. The new due time is a whole number of new intervals before the old one, and at least shortest_interval after
-- the last fetch. A page that is due earlier than that keeps its due time. So only pages whose due time changes are
-- written. If a hint had made the page due earlier, the hint no longer counts: planned_due becomes null.
create or replace function bring_forward_at(t timestamptz, page_ids bigint[], frequencies real[]) returns int
language sql volatile as $$
-- plans: lookups; locks page by id
    select move_pages(array(
        select move_of(p, d.new_due, p.due_is, null, n.frequency)
        from (select u.page_id, u.frequency, interval '24 hours' / u.frequency::float8 as every
              from unnest(page_ids, frequencies) as u (page_id, frequency) offset 0) n
        join page p on p.page_id = n.page_id
        -- With this condition setting is read by its index. With `plans: lookups` a table scan counts as so expensive
        -- that the planner would not compare the costs of the other steps.
        join setting s on s.only_row
        cross join lateral (
            select greatest(
                p.due_at - floor(date_part('epoch', p.due_at - t) / date_part('epoch', n.every)) * n.every,
                p.fetched_at + s.shortest_interval) as new_due
        ) d
        where may_come_forward(p) and p.due_at > t + n.every and d.new_due < p.due_at
        order by p.page_id
        for update of p))
$$;

-- bring_forward_at for a run that still holds its job.
create or replace function bring_forward(token bigint, alive_for interval, page_ids bigint[], frequencies real[])
returns int
language sql volatile security definer set lock_timeout = '2s' as $$
    select bring_forward_at(keep_job(token, alive_for), page_ids, frequencies)
$$;

-- Moves the due times of pages to their new frequencies: each is one interval after the last fetch. Returns the number
-- of these pages. The callers pass pages whose due time followed another frequency. A page that would be due in the
-- past gets a random due time within the next `days`. Only pages that are still due in the future are moved. A page
-- that a hint made due earlier does not become due later. A leased page has its old due time until its report, so it
-- usually is not moved.
create or replace function put_dues_at(t timestamptz, page_ids bigint[], frequencies real[], days float8) returns int
language sql volatile as $$
-- plans: lookups; locks page by id
    select move_pages(array(
        select move_of(p, d.new_due, p.due_is, null, n.frequency)
        from (select u.page_id, u.frequency, t + random() * days * interval '24 hours' as if_past
              from unnest(page_ids, frequencies) as u (page_id, frequency) offset 0) n
        join page p on p.page_id = n.page_id
        join setting s on s.only_row                            -- an index scan: see bring_forward_at()
        -- No OFFSET here: after a wait for a lock, PostgreSQL would not compute the subquery again.
        cross join lateral (
            select greatest(case when f.due_at > t then f.due_at else n.if_past end,
                            p.fetched_at + s.shortest_interval) as new_due
            from (select p.fetched_at + interval '24 hours' / n.frequency::float8 as due_at) f
        ) d
        where may_come_forward(p) and p.due_at > t and (p.planned_due is null or d.new_due < p.due_at)
        order by p.page_id
        for update of p))
$$;

-- put_dues_at for a run that still holds its job.
create or replace function put_dues(
    token bigint, alive_for interval, page_ids bigint[], frequencies real[], days float8[]
) returns int
language sql volatile security definer set lock_timeout = '2s' as $$
    -- The worker sends an array for each argument. All elements of days are equal.
    select put_dues_at(keep_job(token, alive_for), page_ids, frequencies, days[1])
$$;

-- Changes the order of late pages within their hosts by new due times, in days since 1970. A page that was fetched
-- after the job read it keeps its due time. If a page is leased, its report sets the next due time.
create or replace function overtake_at(t timestamptz, page_ids bigint[], due_on float8[]) returns int
language sql volatile as $$
-- plans: lookups; locks page by id
    select move_pages(array(
        select move_of(p, least(timestamptz 'epoch' + n.due_on * interval '24 hours', t), p.due_is, p.planned_due,
                       p.frequency)
        from (select * from unnest(page_ids, due_on) as u (page_id, due_on) offset 0) n
        join page p on p.page_id = n.page_id
        where due_follows_frequency(p) and p.due_at <= t
        order by p.page_id
        for update of p))
$$;

-- overtake_at for a run that still holds its job.
create or replace function overtake(token bigint, alive_for interval, page_ids bigint[], due_on float8[]) returns int
language sql volatile security definer set lock_timeout = '2s' as $$
    select overtake_at(keep_job(token, alive_for), page_ids, due_on)
$$;

grant execute on function
    put_prices, bring_forward, put_dues, overtake, fetches_of_last_day, retries_per_day, policy_days,
    new_pages_to_allocate
to recrawl_worker;
grant select on page_to_allocate, host_to_allocate to recrawl_worker;
