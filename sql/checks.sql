-- What every verb refuses, in one wording: FUNCTION: ARGUMENT must be …, got VALUE.

create or replace function recrawl_internal.refuse(problem text) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
begin
    raise exception using message = left(problem, 500), errcode = 'invalid_parameter_value';
end $$;
comment on function recrawl_internal.refuse(text) is 'Raises; a problem of null is none.';

-- A snapshot older than the host locks would show queue rows that another pop already took.
create or replace function recrawl_internal.check_isolation(verb text) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception using
            message = format('%s: the transaction must be READ COMMITTED, got %s', verb, upper(current_setting('transaction_isolation'))),
            errcode = 'invalid_transaction_state';
    end if;
end $$;
comment on function recrawl_internal.check_isolation(text) is 'Raises in a transaction that is not READ COMMITTED.';
