-- block_host: hands out no page of a host until a time, or until unblock_host. Pages that are already handed out stay
-- handed out.

create or replace function block_host_at(t timestamptz, host text, until timestamptz, reason text) returns void
language plpgsql volatile as $$
declare
    id bigint;
begin
    perform refuse(format('block_host: until must be in the future, got %s', coalesce(until::text, 'null')))
    where until is null or until <= t;
    id := host_named('block_host', host);
    until := case when within_reach(until) then until else 'infinity' end;
    perform block_until(id, until, coalesce(reason, 'blocked by the operator'), 0::smallint, t),
            note_event(t, 'host', name_of_host(id), format('blocked until %s%s', time_in_text(until), ': ' || reason)),
            ask_for_allocation(t);
end $$;

create or replace function recrawl.block_host(host text, until timestamptz default 'infinity', reason text default null)
returns void
language sql volatile security definer as $$
    select check_isolation('block_host');
    select block_host_at(clock_timestamp(), host, until, reason)
$$;
comment on function recrawl.block_host is
'Blocks a host: next_pages hands out no page of it. Pages that are already leased stay leased.

* host: its name or address, without port. The host need not have pages yet.
* until: the end of the block. infinity means: until you call unblock_host. A time in the past raises an error.
* reason: a text of yours. The view host_status shows it.';

create or replace function unblock_host_at(t timestamptz, host text) returns void
language plpgsql volatile as $$
declare
    id constant bigint := host_id_of('unblock_host', host);
begin
    perform refuse(format('unblock_host: host must be one that is known, got %L', host)) where id is null;
    perform block_until(id, null, null, 0::smallint, t),
            note_event(t, 'host', name_of_host(id), 'unblocked'),
            ask_for_allocation(t);
end $$;

create or replace function recrawl.unblock_host(host text) returns void
language sql volatile security definer as $$
    select check_isolation('unblock_host');
    select unblock_host_at(clock_timestamp(), host)
$$;
comment on function recrawl.unblock_host is
    'Ends the block of a host, also a block after 429, 503 or failures. Earlier blocks no longer make the next block '
    'longer. An unknown host raises an error.';
grant execute on function recrawl.block_host, recrawl.unblock_host to recrawl_operator;
