"""Frequencies follow from the prices wherever they are read: a page stores that by which its due time was promised."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute("""
        drop view if exists recrawl_internal.page_to_allocate;          -- it has a column less now
        comment on column recrawl_internal.page.frequency is
            'Fetches per day that its due time follows, as of its last report or of the allocation that moved it. What '
            'is in force is worked out from its host''s price. Null = the setting.';
    """)


def downgrade() -> None:
    op.execute("""
        drop view if exists recrawl_internal.page_to_allocate;
        comment on column recrawl_internal.page.frequency is
            'Fetches per day that its due times follow; brought up to date by reports and by allocation. Null = the '
            'setting.';
        update recrawl_internal.replayed set digest = '';
    """)
