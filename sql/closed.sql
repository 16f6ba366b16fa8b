-- Whoever makes a function lets everybody call it, as PostgreSQL has it: not here.
revoke all on all functions in schema recrawl, recrawl_internal from public;
