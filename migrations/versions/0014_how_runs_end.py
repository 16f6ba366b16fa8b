"""A run that died is said to have ended as its worker saw it end; explain_page knows what time it is throughout."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.execute("""
        drop function if exists recrawl_internal.note_failure, recrawl_internal.explain_often,
            recrawl_internal.explain_worth;
    """)


def downgrade() -> None:
    op.execute("""
        drop view if exists recrawl.job_run;
        drop function if exists recrawl_internal.note_failure, recrawl_internal.explain_often,
            recrawl_internal.explain_worth, recrawl_internal.died;
        update recrawl_internal.replayed set digest = '';
    """)
