"""A crawl belongs to whoever claims it first, such as a spider."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting
            add column claimed_by text constraint "claimed_by must have 1 to 200 characters"
                                  check (length(claimed_by) between 1 and 200);
        comment on column recrawl_internal.setting.claimed_by is
            'name: whose crawl this is, as the verb claim said first; none = nobody''s yet';
    """)


def downgrade() -> None:
    op.execute("""
        drop function if exists recrawl.claim;
        alter table recrawl_internal.setting drop column claimed_by;
        update recrawl_internal.replayed set digest = '';
    """)
