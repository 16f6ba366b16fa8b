-- Marks that a person changed something that the allocation depends on: the budget, a setting or the gap of a host, for
-- example. Then the next allocation runs soon, not an hour later. The mark is visible before the transaction commits.
-- Therefore why_allocate_early() waits 5 seconds after it.
create or replace function ask_for_allocation(t timestamptz) returns void
language sql volatile as $$
    select setval('steered', micros(t))
$$;
