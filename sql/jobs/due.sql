-- Finds the jobs that are due; workers ask once a second. A job is due by the settings rates_every, opic_every and
-- allocate_every. It is due soon after a failed run, and earlier if an early run is worth it.

-- The first run of rates finds almost no evidence, and all pages of a crawl begin with the priors that it stores. So
-- six hours until the next run (the default) would be too long. Therefore each pause is at first the time since the
-- first run, and at least 10 minutes.
--
-- «between j.job and j.job» means «= j.job». With «=» the planner may read all runs in the order of their tokens to
-- find the last run of a job.
create or replace view recrawl.job_schedule as
select j.job, j.every,
       case when running.token is null and (j.every is not null)
            then case when last.token is null              -- it never ran
                          then least((select min(v.at) from vital v), now.t)
                      when greatest(last.started_at, last.ended_at) > now.t + small_step()
                          then now.t                          -- the clock was ahead when it ran
                      when last.message = 'stopped' then last.ended_at
                      when failed.times > 0
                          then last.ended_at + least(interval '1 second' * 4 ^ (failed.times - 1), interval '6 hours')
                      when j.job = 'rates' and last.started_at - first.started_at between interval '0' and j.every
                          then last.started_at + least(j.every, greatest(last.started_at - first.started_at,
                                                                         interval '10 minutes'))
                      else last.started_at + j.every end
       end as due_at,
       running.started_at as running_since, ok.ended_at as succeeded_at, failed.times as failures,
       last.message, newest.started_at as ran_at, newest.seconds,
       case when newest.is_dead then false else newest.ok end as ok
from setting s
cross join lateral (
    values ('rates', s.rates_every), ('opic', s.opic_every), ('allocate', s.allocate_every)
) as j (job, every)
cross join (select clock_timestamp() as t offset 0) now
left join lateral (
    select r.token, r.started_at from job r where r.job = j.job and r.ended_at is null
) running on true
left join lateral (
    select r.started_at
    from job r
    where r.job between j.job and j.job and r.ended_at is not null
    order by r.job, r.token
    limit 1
) first on true
left join lateral (
    select r.token, r.started_at, r.ended_at, r.message
    from job r
    where r.job between j.job and j.job and r.ended_at is not null
    order by r.job desc, r.token desc
    limit 1
) last on true
left join lateral (
    select r.token, r.ended_at
    from job r
    where r.job between j.job and j.job and r.ok
    order by r.job desc, r.token desc
    limit 1
) ok on true
cross join lateral (
    select count(*) as times
    from (select from job r
          where r.job = j.job and r.token > coalesce(ok.token, 0) and r.ended_at is not null
                and r.message is distinct from 'stopped'
          limit 20) f
) failed
left join lateral (
    select r.started_at, r.ok, r.ended_at is null and run_is_dead(r) as is_dead,
           date_part('epoch', coalesce(r.ended_at, least(now.t, r.alive_until)) - r.started_at) as seconds
    from job r
    where r.job between j.job and j.job
    order by r.job desc, r.token desc
    limit 1
) newest on true;
comment on view recrawl.job_schedule is
    'One row for each batch job: when it is due, and how its last run ended. A job may run earlier, see the settings '
    'rates_every, opic_every and allocate_every.';
comment on column recrawl.job_schedule.job is 'The name of the job, as `recrawl run` knows it.';
comment on column recrawl.job_schedule.every is
    'The time between two runs, from the setting of the job; null = the job runs only if you start it.';
comment on column recrawl.job_schedule.due_at is
    'The latest time at which the next run starts; null = the job runs now, or it runs only if you start it.';
comment on column recrawl.job_schedule.running_since is
    'The start of the run that runs now; null = the job does not run now.';
comment on column recrawl.job_schedule.succeeded_at is
    'The end of the last run that succeeded; null = no run has succeeded yet.';
comment on column recrawl.job_schedule.failures is 'The number of failed runs since succeeded_at, counted up to 20.';
comment on column recrawl.job_schedule.message is 'The message of the last run that ended.';
comment on column recrawl.job_schedule.ran_at is
    'The start of the last run, even if it still runs; null = the job never ran.';
comment on column recrawl.job_schedule.seconds is 'How long this run took, or how long it has been running.';
comment on column recrawl.job_schedule.ok is 'True if this run succeeded; null while it runs.';

-- The factor by which the frequency of a host changes with its present slots: 1 = no change. given = the fetches per
-- day of the last allocation. The gap of a host may have changed since the allocation, for example by robots.txt. Then
-- the host has another number of slots. With fewer slots than its frequency needs, the frequency falls. A host that was
-- limited by its slots can use more of them, but the share `discovery` stays for new pages.
create or replace function share_in_slots(slots float8, given float8, was_capped boolean, discovery float8)
returns float8
language sql immutable parallel safe
return case when slots < given then slots / given
            when was_capped and slots * (1 - discovery) > given then
                least(2, slots * (1 - discovery) / nullif(given, 0))
            else 1 end;

-- The things that changed by more than 5 % since an allocation. Null = nothing. First the budget is compared, because a
-- measured budget changes although nobody changes a setting. If the budget did not change: the number of pages, their
-- values, and the frequencies that follow from prices and slots.
--
-- These are estimated from a sample of a hundred blocks of the pages. The error of the sample is computed from the
-- differences between blocks; it is assumed that few blocks have no page. A smaller table is read whole, so it has no
-- error.
--
-- If no page takes part, an allocation would change nothing. The policy optimal ignores slots, so its frequencies
-- cannot be compared with the fetches that hosts have slots for. A millionth of a fetch per day is nothing: with an
-- infinite price, frequencies are only nearly 0.
create or replace function moved_since_allocation(last allocation) returns text
language plpgsql volatile as $$
-- plans: whole
declare
    blocks  constant float8 := blocks_of('page');
    percent constant real := sample_percent('page', 100);
    moved   text;
begin
    if exists (select from setting s where abs(s.budget - last.budget) > 0.05 * last.budget) then
        return 'budget';
    end if;
    select string_agg(f.name, ', ' order by f.place) into moved
    from (
        select place, name, before, count(*) as read, avg(x) as mean, stddev(x) as deviation, sum(x) as sum,
               sum(pages) as pages
        from (
            select (p.ctid::text::point)[0] as block,
                   count(*) filter (where is_in)::float8 as pages,
                   coalesce(sum(p.value) filter (where is_in), 0)::float8 as worth,
                   coalesce(sum(f.frequency * share_in_slots(h.slots, own.frequency, own.is_capped, s.discovery))
                            filter (where is_in), 0)::float8 as frequency
            from page p tablesample system (percent)
            cross join setting s
            join host_terms common on common.host_id = 0
            left join host_terms own on own.host_id = p.host_id
            cross join lateral belief(p.pinned_rate, p.seen_changes, p.seen_days, own, common) b
            cross join lateral (
                select slots_per_day(host_gap(h.gap, h.crawl_delay, s.default_gap), s.window_share) as slots,
                       coalesce(h.blocked_until > clock_timestamp() + interval '1 day', false) as is_closed
                from host h where h.host_id = p.host_id
                offset 0
            ) h
            cross join lateral (
                select takes_part(p.state, p.attempts, s.max_attempts, p.fetched_at, p.pinned_rate, p.due_is)
                       and not h.is_closed as is_in
            ) i
            left join lateral frequency_of(
                p.pinned_interval, own, common, highest_frequency(s), p.value, b.rate
            ) f on is_in
            group by 1
        ) block
        cross join lateral (values
            (1, 'pages', pages, coalesce(last.pages, 0)), (2, 'values', worth, coalesce(last.worth, 0)),
            (3, 'frequencies', frequency, coalesce(last.for_revisits, 0))) f (place, name, x, before)
        group by place, name, before
    ) f
    where pages > 0 and (name <> 'frequencies' or last.policy <> 'optimal')
          and case when percent < 100
                   then abs(blocks * mean - before)
                        > greatest(0.05 * before, 1e-6, 3 * blocks * deviation / sqrt(greatest(read, 1)))
                   else abs(sum - before) > greatest(0.05 * before, 1e-6) end;
    return moved;
end $$;

-- The jobs that are worth a run before they are due, with the reason; a null reason = it is not worth it. Early runs
-- take at most a twentieth of the time. Exception: after a user set another policy.
create or replace function early_jobs(t timestamptz) returns table (job text, why text)
language plpgsql volatile as $$
-- plans: whole
#variable_conflict use_column
declare
    allocation allocation;
    ran_at     timestamptz;            -- when the last allocation began, also if it found no page
    rested     text[];
    percent    constant real := sample_percent('graph_news', 20);
begin
    select * into allocation from allocation order by token desc limit 1;
    select j.ran_at into ran_at from recrawl.job_schedule j where j.job = 'allocate';
    -- Jobs that are not due and not failing, and whose last run ended 20 times its own length ago, at least 50 s. For
    -- allocate this pause does not count if the policy was changed since its last run began.
    rested := array(
        select j.job
        from recrawl.job_schedule j
        cross join setting s cross join steered w
        left join lateral (
            select r.started_at, r.ended_at from job r
            where r.job between j.job and j.job and r.ended_at is not null
            order by r.job desc, r.token desc limit 1
        ) last on true
        where j.due_at > t and j.failures = 0
          and (t - last.ended_at not between '0' and greatest('50 seconds', 20 * (last.ended_at - last.started_at))
               or (j.job = 'allocate' and s.policy <> allocation.policy
                   and from_micros(w.last_value) > last.started_at)));
    -- 5 % of the pages of the graph are in the news, by a sample.
    if 'opic' = any (rested) and (is_news_full() or (
           select count(*) * 100 / percent
                  >= greatest(0.05 * (select pages from opic order by token desc limit 1), 1)
           from graph_news tablesample system (percent))) then
        return query select 'opic', 'much of the graph is news';
    end if;
    if 'allocate' = any (rested) then
        return query
            select 'allocate',
                   case when from_micros(w.last_value) between ran_at and t - interval '5 seconds'
                        then 'settings or hosts were changed'
                        else moved_since_allocation(allocation) || ' moved' end
            from steered w;
    end if;
end $$;

-- The jobs that are due, with the reason, and the newest token of all runs. With or_early also the jobs that are worth
-- an early run.
create or replace function due_jobs(or_early boolean) returns table (job text, why text, newest bigint)
language plpgsql volatile security definer as $$
-- plans: lookups
#variable_conflict use_column
begin
    return query
        select s.job, 'due', n.last_value - (not n.is_called)::int
        from recrawl.job_schedule s cross join job_token n
        where s.due_at <= clock_timestamp();
    if or_early then
        return query
            select e.job, e.why, n.last_value - (not n.is_called)::int
            from early_jobs(clock_timestamp()) e cross join job_token n
            where e.why is not null;
    end if;
end $$;
grant execute on function due_jobs to recrawl_worker;
