-- Deletes history that is too old. Two runs of each job stay. The last run that succeeded says what is in force. The
-- last run that failed says what went wrong.

-- Deletes rows that are older than the settings keep_vitals and keep_history allow. Returns how many. A clock that is
-- years ahead for a moment must not delete the whole history. Therefore t counts only up to one day after the newest
-- vitals. Vitals of the last ten minutes are left out, because a wrong clock may have written them.
create or replace function forget_history_at(t timestamptz) returns int
language plpgsql volatile as $$
-- plans: whole; writes vital, vital_hour, event, job, allocation, opic, robots; locks nothing that anybody waits for
declare
    gone int;
begin
    with
    -- Rows before these times are too old.
    too_old as (
        select n.t - s.keep_vitals as vitals, n.t - s.keep_history as history
        from setting s
        cross join (
            select least(forget_history_at.t, max(v.at) + interval '1 day') as t
            from vital v
            where v.at < forget_history_at.t - interval '10 minutes'
        ) n
    ),
    minutes as (delete from vital v using too_old o where v.at < o.vitals returning 1),
    hours as (delete from vital_hour v using too_old o where v.at < o.history returning 1),
    events as (delete from event e using too_old o where e.at < o.history returning 1),
    -- Runs of jobs. The last run that succeeded stays, and the last run that failed.
    runs as (
        delete from job j using too_old o
        where j.ended_at < o.history and j.token not in (select max(token) from job group by job, ok)
        returning 1
    ),
    -- Allocations, except the one in force and the first with the policy that is set: policy_days() counts from it.
    allocations as (
        delete from allocation a using too_old o
        where a.started_at < o.history and a.token < (select max(token) from allocation)
          and a.token is distinct from (select first_of_policy())
        returning 1
    ),
    -- Runs of opic, except the one in force.
    opics as (
        delete from opic p using too_old o
        where p.started_at < o.history and p.token < (select max(token) from opic)
        returning 1
    ),
    -- Each robots.txt whose good_until is more than keep_history ago. Rows with a crawl delay stay. Without such a
    -- row, set_robots would take the delay of the host for one that a report gave.
    sites as (
        delete from robots r using too_old o where r.good_until < o.history and r.crawl_delay is null returning 1
    )
    select count(*) into gone
    from (select from minutes union all select from hours union all select from events union all select from runs
          union all select from allocations union all select from opics union all select from sites) all_of_them;
    return gone;
end $$;

-- forget_history_at now, for the job retention.
create or replace function forget_history() returns int
language sql volatile security definer as $$
    select forget_history_at(clock_timestamp())
$$;
grant execute on function forget_history to recrawl_worker;
