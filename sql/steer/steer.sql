-- What a person says of the budget, the settings or a host's gap is planned for soon, not with the next run an hour
-- later. Marked before its transaction commits: whoever looks waits a little.
create or replace function recrawl_internal.steer(t timestamptz) returns void
language sql volatile
set search_path = recrawl_internal, pg_temp
as $$
    select setval('steered', micros(t))
$$;
comment on function recrawl_internal.steer(timestamptz) is 'Notes that somebody changed what an allocation depends on.';
