"""The first version of the tables. Locks: nothing, because there is no crawl yet.

Each file of 0001_first/ makes one group of tables, and can be read on its own.
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None

FOLDER = Path(__file__).with_suffix("")
GROUPS = ("schemas", "public_types", "settings", "hosts", "pages", "queue", "cells", "graph", "jobs", "vitals", "logs")


def upgrade() -> None:
    for group in GROUPS:
        op.execute((FOLDER / f"{group}.sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    # Roles stay: they belong to the whole server. recrawl_internal stays: alembic keeps its table there. All names are
    # read before anything is dropped, because one drop takes with it what depends on it. Tables go first: the sequence
    # of an identity column is dropped only with its table.
    op.execute("""
        drop schema recrawl cascade;

        do $$
        declare
            things constant text[] := array(
                select case c.relkind when 'S' then 'sequence ' when 'c' then 'type ' else 'table ' end
                       || c.oid::regclass
                from pg_class c
                where c.relnamespace = 'recrawl_internal'::regnamespace
                  and c.relkind in ('r', 'p', 'S', 'c') and c.relname <> 'alembic_version'
                union all
                select 'function ' || p.oid::regprocedure
                from pg_proc p
                where p.pronamespace = 'recrawl_internal'::regnamespace
                order by 1 desc);
            thing text;
        begin
            foreach thing in array things loop
                execute 'drop ' || regexp_replace(thing, ' ', ' if exists ') || ' cascade';
            end loop;
        end $$;
    """)
