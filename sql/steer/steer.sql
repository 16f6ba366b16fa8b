-- After a person changes the budget, a setting or the gap of a host, the next allocation runs soon, not an hour later.
-- The mark is visible before the transaction commits. Therefore the job that reads the mark waits a little.
create or replace function steer(t timestamptz) returns void
language sql volatile as $$
    select setval('steered', micros(t))
$$;
comment on function steer is 'Marks that a person changed something that the allocation depends on.';
