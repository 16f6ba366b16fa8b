-- Moves due times to new frequencies (allocate, set_rate, set_interval).

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
        where may_become_due_earlier(p) and p.due_at > t + n.every and d.new_due < p.due_at
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
-- past gets a random due time in the next within_days days. Only pages that are still due in the future are moved. A
-- page that a hint made due earlier does not become due later. A leased page has its old due time until its report, so
-- it usually is not moved.
create or replace function put_dues_at(t timestamptz, page_ids bigint[], frequencies real[], within_days float8)
returns int
language sql volatile as $$
-- plans: lookups; locks page by id
    select move_pages(array(
        select move_of(p, d.new_due, p.due_is, null, n.frequency)
        from (select u.page_id, u.frequency, t + random() * within_days * interval '24 hours' as if_past
              from unnest(page_ids, frequencies) as u (page_id, frequency) offset 0) n
        join page p on p.page_id = n.page_id
        join setting s on s.only_row                            -- an index scan: see bring_forward_at()
        -- No OFFSET here: after a wait for a lock, PostgreSQL would not compute the subquery again.
        cross join lateral (
            select greatest(case when f.due_at > t then f.due_at else n.if_past end,
                            p.fetched_at + s.shortest_interval) as new_due
            from (select p.fetched_at + interval '24 hours' / n.frequency::float8 as due_at) f
        ) d
        where may_become_due_earlier(p) and p.due_at > t and (p.planned_due is null or d.new_due < p.due_at)
        order by p.page_id
        for update of p))
$$;

-- put_dues_at for a run that still holds its job.
create or replace function put_dues(
    token bigint, alive_for interval, page_ids bigint[], frequencies real[], within_days float8[]
) returns int
language sql volatile security definer set lock_timeout = '2s' as $$
    -- The worker sends an array for each argument. All elements of within_days are equal.
    select put_dues_at(keep_job(token, alive_for), page_ids, frequencies, within_days[1])
$$;

grant execute on function bring_forward, put_dues to recrawl_worker;
