"""A page that is always answered with 429 or 503 waits by itself, and its host goes on; what was known of a robots.txt
long ago is forgotten."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute("""
        drop function if exists recrawl_internal.wait_after, recrawl_internal.matched_results,
            recrawl_internal.judged_results, recrawl_internal.record_pass;
        create index host_name_of_host on recrawl_internal.host_name (host_id);
        comment on column recrawl_internal.setting.keep_history is
            'interval: how long vitals_by_hour, events, what a robots.txt said and the runs of jobs are kept; the last '
            'runs always are.';
    """)


def downgrade() -> None:
    op.execute("""
        drop index recrawl_internal.host_name_of_host;
        drop function if exists recrawl_internal.wait_after, recrawl_internal.matched_results,
            recrawl_internal.judged_results, recrawl_internal.record_pass, recrawl_internal.forgive_strike;
        comment on column recrawl_internal.setting.keep_history is
            'interval: how long vitals_by_hour, events and the runs of jobs are kept; the last runs always are.';
        update recrawl_internal.replayed set digest = '';
    """)
