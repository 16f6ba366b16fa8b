"""A robots.txt that is answered with 429 or 503 holds its host, for as long as it asks for."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.execute("drop function if exists recrawl.set_robots, recrawl_internal.set_robots_at")


def downgrade() -> None:
    op.execute("""
        drop function if exists recrawl.set_robots, recrawl_internal.set_robots_at;
        update recrawl_internal.replayed set digest = '';
    """)
