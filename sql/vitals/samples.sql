-- Estimates of due revisits and of freshness from a few hundred blocks of the large tables, so that the cost does not
-- grow with the tables. Also the oldest due revisit, and the oldest entry of the inbox.

-- The number of due revisits and of new pages. blocks: how many blocks of each table are read. A smaller table is read
-- whole.
create or replace function sample_queue(
    t timestamptz, blocks int, out due bigint, out waiting_new bigint, out is_estimate boolean
)
language plpgsql volatile as $$
-- plans: lookups
begin
    is_estimate := greatest(blocks_of('queue'), blocks_of('new_page'), blocks_of('inbox')) > blocks;
    due := round((
        select sum(b.times * (select count(*) from queue where ctid >= b.first and ctid < b.past and due_at <= t))
        from sampled_blocks('queue', blocks) b));
    waiting_new := round((
        select sum(b.times * (select count(*) from new_page where ctid >= b.first and ctid < b.past))
        from sampled_blocks('new_page', blocks) b) + (
        select sum(b.times * (select count(*) from inbox
                              where ctid >= b.first and ctid < b.past
                                and old_due is null and old_rank is null and not revived))
        from sampled_blocks('inbox', blocks) b));
end $$;

-- Due revisits (the same number as in sample_queue), and what they wait for: a crawler, the gap of their host, or the
-- end of its block. If a host has been ready for less than 5 seconds, only its first page waits for a crawler. Its
-- other pages wait for the gap. If a host has been ready for longer, all its pages wait for crawlers.
create or replace function sample_due(
    t timestamptz, blocks int, out due bigint, out due_crawler bigint, out due_gap bigint, out due_blocked bigint
)
language plpgsql volatile as $$
-- plans: lookups
declare
    s setting;
begin
    select * into s from setting;
    select coalesce(sum(b.times) filter (where h.is_blocked), 0),
           coalesce(sum(b.times) filter (where not h.is_blocked and h.is_free), 0),
           coalesce(sum(b.times) filter (where not h.is_blocked and not h.is_free), 0)
    into due_blocked, due_crawler, due_gap
    from sampled_blocks('queue', blocks) b
    cross join lateral (
        select q.host_id, q.due_at from queue q where q.ctid >= b.first and q.ctid < b.past and q.due_at <= t
        offset 0
    ) q
    cross join lateral (
        select coalesce(h.blocked_until > t, false) as is_blocked,
               greatest(next_slot(h, s), h.busy_until)
                   <= t - case when q.due_at <= h.head_due then interval '0' else interval '5 seconds' end
               as is_free
        from host h
        where h.host_id = q.host_id
        offset 0
    ) h;
    due := due_blocked + due_crawler + due_gap;
end $$;

-- The oldest due time of a revisit. is_exact: no other host can have an older one. head_due of a host is never after
-- the due times of its queue, but it may be before them. Therefore the queues of the hosts with the earliest head_due
-- say how old their oldest revisits really are. If there are too many hosts to read all of them, the hosts are used
-- that a worker found last (late_host). Blocked hosts are included.
create or replace function oldest_due(t timestamptz, out oldest timestamptz, out is_exact boolean)
language plpgsql volatile security definer as $$
-- plans: whole
declare
    most    constant int := 21;        -- the number of hosts whose queues are read
    are_all constant boolean := blocks_of('host') <= 2000;         -- all hosts are compared
begin
    -- A host whose queue was not read has no revisit that is due before the last head_due that was read.
    select min(f.oldest), are_all and (count(*) < most or coalesce(min(f.oldest) <= max(f.head_due), false))
    into oldest, is_exact
    from (
        select c.head_due, oldest_due_of(c.host_id, c.head_due, t) as oldest
        from (
            select h.host_id, h.head_due from host h where are_all
            union all
            select h.host_id, h.head_due
            from late_host l
            cross join lateral (select * from host h where h.host_id = l.host_id offset 0) h
            where not are_all
        ) c
        where c.head_due <= t
        order by c.head_due
        limit most
    ) f;
end $$;

-- The oldest due time of the revisits of a host; null if no revisit is due. head_due: where the scan starts.
create or replace function oldest_due_of(host_id bigint, head_due timestamptz, t timestamptz) returns timestamptz
language plpgsql volatile as $$
-- plans: lookups
begin
    return (select q.due_at from queue q
            where q.host_id = oldest_due_of.host_id and q.due_at between oldest_due_of.head_due and t
            order by q.due_at limit 1);
end $$;

-- The estimated share of the value that is fresh, its standard error, and the share that was fetched at least once.
-- Uses the model of the allocation: a page is fresh with probability exp(−rate · age). For `fresh` only pages that take
-- part in the allocation count, and no page of a host that is blocked for more than a day. For `covered` all live pages
-- count. The differences between the blocks give the standard error of the sample. The results are rounded, because a
-- share such as 1e-60 does not fit in a real.
create or replace function sample_pages(
    t timestamptz, blocks int, out fresh real, out fresh_error real, out covered real
)
language plpgsql volatile as $$
-- plans: whole
declare
    share real := sample_percent('page', blocks);
begin
    with
    -- One row for each page of the sample: takes_part says whether it counts for freshness.
    of_page as materialized (
        select split_part(p.ctid::text, ',', 1) as block, p.value::float8 as value,
               p.fetched_at is not null as is_seen,
               takes_part(p.state, p.attempts, s.max_attempts, p.fetched_at, p.pinned_rate, p.due_is)
                   and not h.is_closed as takes_part,
               case when p.fetched_at is null then 0
                    else exp(-least(b.rate * greatest(date_part('epoch', t - p.fetched_at), 0) / 86400, 40))
               end as freshness
        from page p tablesample system (share)
        cross join setting s
        join host_terms common on common.host_id = 0
        left join lateral (select o as terms from host_terms o where o.host_id = p.host_id offset 0) own on true
        cross join lateral (
            select coalesce(h.blocked_until > t + interval '1 day', false) as is_closed
            from host h where h.host_id = p.host_id
            offset 0
        ) h
        cross join lateral belief(p.pinned_rate, p.seen_changes, p.seen_days, own.terms, common) b
        where p.state = 'live'
    ),
    -- The sums of each block.
    of_block as (
        select coalesce(sum(value) filter (where takes_part), 0) as value,
               coalesce(sum(value * freshness) filter (where takes_part), 0) as worth
        from of_page
        group by block
    ),
    -- The share that is fresh, over all blocks.
    ratio as (
        select sum(worth) / nullif(sum(value), 0) as mean, sum(value) as value, count(*) as blocks from of_block
    )
    select round(r.mean::numeric, 9),
           -- The standard error of a ratio of two sums, from the difference of each block to the common ratio.
           (select round((sqrt(r.blocks / nullif(r.blocks - 1.0, 0) * sum((b.worth - r.mean * b.value) ^ 2)
                               * (1 - share / 100)) / nullif(r.value, 0))::numeric, 9)
            from of_block b),
           (select round((sum(value) filter (where is_seen) / nullif(sum(value), 0))::numeric, 9) from of_page)
    into fresh, fresh_error, covered
    from ratio r;
end $$;

-- How long the oldest entry of the inbox has waited; null if the inbox is empty.
create or replace function inbox_wait() returns interval
language sql volatile as $$
-- plans: lookups
    -- The times of the inbox are clock times, not the given time of a call.
    select greatest(clock_timestamp() - at, interval '0')
    from inbox where at >= from_micros((select last_value from inbox_horizon))
    order by at limit 1
$$;
