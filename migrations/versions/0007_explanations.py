"""What explain_page says, row by row."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute("""
        create type recrawl.explanation as (
            topic  text,
            code   text,
            says   text,
            mend   text,
            detail jsonb
        );
        comment on type recrawl.explanation is
            'One row of explain_page: what is so of a page, in a code and in words; mend is SQL or a command that '
            'changes it, null where nothing needs to be done, or can be; detail has the figures, times in UTC.';
    """)


def downgrade() -> None:
    op.execute("drop type recrawl.explanation cascade")
