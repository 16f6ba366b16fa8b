"""The graph: packed links, what changed of it, relevance, and the scores that the links give pages."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute(Path(__file__).with_name("0003_graph.up.sql").read_text())


def downgrade() -> None:
    op.execute(Path(__file__).with_name("0003_graph.down.sql").read_text())
