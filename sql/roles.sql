-- Creates four roles without rights. The other files of install.sql grant the rights. Roles belong to the whole server:
-- a missing role is created, and no role is ever dropped. `recrawl migrate --no-roles` leaves out this file and all
-- grants.

do $$
declare
    wanted text;
begin
    foreach wanted in array '{recrawl_crawler,recrawl_reader,recrawl_operator,recrawl_worker}'::text[] loop
        begin
            if not exists (select from pg_roles where rolname = wanted) then
                execute format('create role %I', wanted);
            end if;
            -- Operators and workers may read everything that readers may read.
            if wanted in ('recrawl_operator', 'recrawl_worker')
               and not pg_has_role(wanted, 'recrawl_reader', 'member') then
                execute format('grant recrawl_reader to %I', wanted);
            end if;
        exception
            when duplicate_object or unique_violation then null;          -- another database's migration was first
            when insufficient_privilege then
                raise exception using
                    message = format(
                        'the role %s is missing or no member of recrawl_reader, and %s may not change that',
                        wanted, current_user),
                    hint = 'Let an administrator run: create role recrawl_crawler; create role recrawl_reader; '
                           'create role recrawl_operator; create role recrawl_worker; '
                           'grant recrawl_reader to recrawl_operator, recrawl_worker; '
                           'If nobody can, use this login alone for everything: recrawl migrate --no-roles';
        end;
    end loop;
    -- `recrawl dashboard` and the metrics of a worker run as the owner, and read with the rights of recrawl_reader. So
    -- the owner must be a member of it.
    if not pg_has_role('recrawl_reader', 'usage') then
        execute format('grant recrawl_reader to %I', current_user);
    end if;
exception
    when insufficient_privilege then null;                                -- then the owner reads with its own rights
end $$;
