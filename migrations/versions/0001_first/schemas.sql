-- The two schemas. People use `recrawl`. Everything else is in `recrawl_internal`, which env.py makes before the first
-- version because alembic keeps its own table there.

create schema recrawl;
comment on schema recrawl is 'The crawl scheduler: the functions and views that people use.';
comment on schema recrawl_internal is
    'The tables and helpers of the crawl scheduler, and functions that are given the time. Only recrawl uses them.';

-- sql/ is not versioned: env.py runs its files again when this row says that something differs.
create table recrawl_internal.replayed (
    only_row   boolean primary key default true check (only_row),
    digest     text    not null,
    in_force   text,
    declared   jsonb   not null default '{}',
    with_roles boolean not null default true
);
comment on table recrawl_internal.replayed is
    'The version of sql/ that is installed in this database. The table has one row.';
comment on column recrawl_internal.replayed.only_row is 'Always true, so that the table has only one row.';
comment on column recrawl_internal.replayed.digest is 'The sha256 of all files of sql/.';
comment on column recrawl_internal.replayed.in_force is
    'A hash of everything that sql/ created, and of its grants. A restore may lose grants, and people may change '
    'them.';
comment on column recrawl_internal.replayed.declared is
    'A hash of the declaration of each function, view and row type. An object whose hash changed is dropped before '
    'it is created again.';
comment on column recrawl_internal.replayed.with_roles is
    'True if the four roles have rights here. False after `recrawl migrate --no-roles`.';
