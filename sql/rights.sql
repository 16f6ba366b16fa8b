-- Takes all rights away. The files after this one grant them again. So a right that no file grants any more is gone
-- after each run of install.sql. Then opens the schemas.

do $$
declare
    -- `recrawl migrate --no-roles` runs this too. The roles exist then only if another crawl of the server made them.
    those constant text := concat_ws(', ', 'public', (
        select string_agg(quote_ident(rolname), ', ')
        from pg_roles
        where rolname in ('recrawl_crawler', 'recrawl_reader', 'recrawl_operator', 'recrawl_worker')));
begin
    execute 'revoke all on schema recrawl, recrawl_internal from ' || those;
    execute 'revoke all on all functions in schema recrawl, recrawl_internal from ' || those;
    execute 'revoke all on all tables in schema recrawl, recrawl_internal from ' || those;
    execute 'revoke all on all sequences in schema recrawl, recrawl_internal from ' || those;
end $$;

grant usage on schema recrawl to recrawl_crawler, recrawl_reader, recrawl_operator, recrawl_worker;
grant usage on schema recrawl_internal to recrawl_worker;
