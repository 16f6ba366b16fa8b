-- Checks of arguments. Most messages have the form FUNCTION: ARGUMENT must be …, got VALUE.

-- Raises an error with this message.
create or replace function refuse(problem text) returns void
language plpgsql volatile as $$
begin
    raise exception using message = left(problem, 500), errcode = 'invalid_parameter_value';
end $$;

-- The error message for a value or a rate; null = it is valid. A real can store each valid value and rate, and a float8
-- can store their products.
create or replace function problem_with_amount(argument text, amount float8) returns text
language sql stable parallel safe      -- like format(); otherwise it would not be inlined
return case when not (amount = 0 or amount between least_amount() and most_amount()) then
    format('%s must be 0 or between 1e-30 and 1e30%s, got %s',
           argument, case argument when 'rate' then ' changes per day' else '' end, amount) end;

-- Raises in a transaction that is not READ COMMITTED. A snapshot that is older than the locks on the hosts would still
-- show pages that another call has already handed out.
create or replace function check_isolation(verb text) returns void
language plpgsql volatile as $$
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception using
            message = format('%s: the transaction must be READ COMMITTED, got %s',
                             verb, upper(current_setting('transaction_isolation'))),
            hint = format('ALTER ROLE %I SET default_transaction_isolation = ''read committed'';', session_user),
            errcode = 'invalid_transaction_state';
    end if;
end $$;
