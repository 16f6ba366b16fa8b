"""${message}. Locks: the tables that crawlers wait for while this version is applied."""

from alembic import op

revision = "${up_revision}"
down_revision = "${down_revision}"


def upgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting add column …;
    """)


def downgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting drop column …;
    """)
