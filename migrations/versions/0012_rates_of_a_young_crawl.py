"""A young crawl learns its rates sooner."""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("""
        comment on column recrawl_internal.setting.rates_every is
            'interval: a worker learns so often how often pages change on each host, and also 10, 20, 40 minutes and '
            'so on after the first time; none = never.';
    """)


def downgrade() -> None:
    op.execute("""
        comment on column recrawl_internal.setting.rates_every is
            'interval: a worker learns so often how often pages change on each host; none = never.';
        update recrawl_internal.replayed set digest = '';
    """)
