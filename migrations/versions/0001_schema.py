"""The schema: everything that lasts. To be read in 0001_schema.sql; later versions hold their SQL themselves."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    # Roles belong to the whole server and stay; so does the schema that holds alembic's own table. All names are known
    # before anything goes, as what stands on it goes with it.
    op.execute("""
        drop schema recrawl cascade;

        do $$
        declare
            things constant text[] := array(
                select 'function ' || p.oid::regprocedure
                from pg_proc p
                where p.pronamespace = 'recrawl_internal'::regnamespace
                union all
                select case c.relkind when 'S' then 'sequence ' when 'c' then 'type ' else 'table ' end
                       || c.oid::regclass
                from pg_class c
                where c.relnamespace = 'recrawl_internal'::regnamespace
                  and c.relkind in ('r', 'p', 'S', 'c') and c.relname <> 'alembic_version');
            thing text;
        begin
            foreach thing in array things loop
                execute 'drop ' || regexp_replace(thing, ' ', ' if exists ') || ' cascade';
            end loop;
        end $$;
    """)
