"""The schema: everything that lasts. To be read in 0001_schema.sql; later versions hold their SQL themselves."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text())


def downgrade() -> None:
    # Roles belong to the whole server and stay; so does the schema that holds alembic's own table.
    op.execute("""
        drop schema recrawl cascade;

        do $$
        declare
            thing text;
        begin
            for thing in
                select 'function ' || p.oid::regprocedure
                from pg_proc p
                where p.pronamespace = 'recrawl_internal'::regnamespace
                union all
                select case c.relkind when 'S' then 'sequence ' else 'table ' end || c.oid::regclass
                from pg_class c
                where c.relnamespace = 'recrawl_internal'::regnamespace
                  and c.relkind in ('r', 'p', 'S') and not c.relispartition and c.relname <> 'alembic_version'
            loop
                execute 'drop ' || thing || ' cascade';
            end loop;
            for thing in
                select 'type ' || t.oid::regtype
                from pg_type t join pg_class c on c.oid = t.typrelid and c.relkind = 'c'
                where t.typnamespace = 'recrawl_internal'::regnamespace
            loop
                execute 'drop ' || thing || ' cascade';
            end loop;
        end $$;
    """)
