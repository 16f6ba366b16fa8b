"""Prices: how often pages change, what a fetch must earn on each host, and what follows for each page."""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute(Path(__file__).with_name("0002_prices.up.sql").read_text())


def downgrade() -> None:
    op.execute(Path(__file__).with_name("0002_prices.down.sql").read_text())
