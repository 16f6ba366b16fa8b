-- Counts hosts and their pages, and finds the hosts whose revisits have waited longest. This reads all hosts, also of a
-- large crawl: a million hosts take a second. The worker does it every five minutes.

-- Writes the counts to vitals_state, and the hosts to late_host.
create or replace function look_at_hosts(t timestamptz) returns void
language plpgsql volatile as $$
-- plans: whole; writes late_host, vitals_state; locks nothing: the caller holds vitals_state
declare
    most constant int := 200;
begin
    update vitals_state set
        hosts_at = t,
        (pages, hosts, hosts_blocked) = (
            select coalesce(sum(h.pages), 0), count(*), count(*) filter (where h.blocked_until > t) from host h);
    delete from late_host;
    -- head_due is never after the oldest due time, but it may be before it. Therefore 100 hosts too many are read, and
    -- only hosts with a due revisit are kept.
    insert into late_host (host_id, due, oldest_due, as_of)
    select h.host_id, due_of(h.host_id, d.oldest_due, t), d.oldest_due, t
    from (select host_id, head_due from host where head_due <= t order by head_due limit most + 100) h
    cross join lateral (select oldest_due_of(h.host_id, h.head_due, t) as oldest_due offset 0) d
    where d.oldest_due is not null
    order by d.oldest_due
    limit most;
end $$;

-- The number of due revisits of a host, at most 10,000. head_due: where the scan of its queue starts.
create or replace function due_of(host_id bigint, head_due timestamptz, t timestamptz) returns bigint
language plpgsql volatile as $$
-- plans: lookups
begin
    return (select count(*) from (
        select from queue q
        where q.host_id = due_of.host_id and q.due_at between due_of.head_due and t
        limit 10000
    ) d);
end $$;
