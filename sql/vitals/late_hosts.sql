-- The one place that reads all hosts: by the worker, every five minutes. A million take a second.

create or replace function recrawl_internal.look_at_hosts(t timestamptz) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: whole; writes late_host, vitals_state; locks nothing: the caller holds vitals_state
declare
    most constant int := 200;
begin
    update vitals_state set
        hosts_at = t,
        (pages, hosts, hosts_blocked) = (
            select coalesce(sum(h.pages), 0), count(*), count(*) filter (where h.blocked_until > t) from host h);
    delete from late_host;
    -- head_due lies at or below the oldest due time: more hosts than are wanted, and those of them that are late.
    insert into late_host (host_id, due, oldest_due, as_of)
    select h.host_id, due_of(h.host_id, d.oldest_due, t), d.oldest_due, t
    from (select host_id, head_due from host where head_due <= t order by head_due limit most + 100) h
    cross join lateral (select oldest_due_of(h.host_id, h.head_due, t) as oldest_due offset 0) d
    where d.oldest_due is not null
    order by d.oldest_due
    limit most;
end $$;
comment on function recrawl_internal.look_at_hosts(timestamptz) is
    'Counts hosts and their pages, and finds those whose revisits are longest due.';

create or replace function recrawl_internal.due_of(host_id bigint, head_due timestamptz, t timestamptz) returns bigint
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups
begin
    return (select count(*) from (
        select from queue q
        where q.host_id = due_of.host_id and q.due_at between due_of.head_due and t
        limit 10000
    ) d);
end $$;
comment on function recrawl_internal.due_of(bigint, timestamptz, timestamptz) is
    'How many revisits of a host are due, counted to 10,000.';
