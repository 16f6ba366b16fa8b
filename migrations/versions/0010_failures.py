"""A robots.txt that is answered with 429 or 503 holds its host; pages that fail are tried ever more rarely, and not a
month later from the fifth time on."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.execute("""
        drop function if exists recrawl.set_robots, recrawl_internal.set_robots_at, recrawl_internal.wait_after,
            recrawl_internal.judged_results
    """)


def downgrade() -> None:
    op.execute("""
        drop function if exists recrawl.set_robots, recrawl_internal.set_robots_at, recrawl_internal.wait_after,
            recrawl_internal.judged_results;
        update recrawl_internal.replayed set digest = '';
    """)
