"""The queue: hosts, pages, what is due, what is leased, what waits to be queued."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute(Path(__file__).with_name("0001_queue.up.sql").read_text())


def downgrade() -> None:
    op.execute(Path(__file__).with_name("0001_queue.down.sql").read_text())
