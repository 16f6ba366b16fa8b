"""${message}. Locks: the tables that crawlers wait for while this version is applied."""

from alembic import context, op

revision = "${up_revision}"
down_revision = "${down_revision}"


def upgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting add column …;
    """)


def downgrade() -> None:
    # The only way down is to base: version 0001 drops everything.
    if context.get_revision_argument() is not None:
        raise SystemExit("there is no way back to version ${down_revision}: restore a backup from before the upgrade")
