"""A robots.txt that is answered with 429 or 503 holds its host; pages that fail are tried ever more rarely, and not a
month later from the fifth time on."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.execute("""
        drop function if exists recrawl.set_robots, recrawl_internal.set_robots_at, recrawl_internal.wait_after,
            recrawl_internal.judged_results;
        comment on column recrawl_internal.setting.max_attempts is
            'attempts: in a row that fail before a page loses its share of the budget; it is tried ever more rarely.';
    """)


def downgrade() -> None:
    op.execute("""
        drop function if exists recrawl.set_robots, recrawl_internal.set_robots_at, recrawl_internal.wait_after,
            recrawl_internal.judged_results;
        comment on column recrawl_internal.setting.max_attempts is
            'attempts: in a row that fail before a page is given up and rechecked rarely.';
        update recrawl_internal.replayed set digest = '';
    """)
