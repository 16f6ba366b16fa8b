"""A run of a job takes the time that it is given for now, in simulations; else what the clock says."""

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.execute("""
        drop view if exists recrawl_internal.page_to_allocate, recrawl_internal.host_to_allocate,
            recrawl_internal.new_pages_to_allocate, recrawl_internal.page_found_of_late,
            recrawl_internal.spent_of_late, recrawl_internal.policy_in_force;
        drop function if exists recrawl_internal.start_job(text, interval);
        drop function if exists recrawl_internal.keep_job(bigint, interval);
        alter table recrawl_internal.job add column as_of timestamptz;
        comment on column recrawl_internal.job.as_of is
            'What time it is for the run, where that is not the clock''s: in simulations.';
        -- To leave them out of the new pages that wait, allocation read the whole table.
        create index page_with_pinned_rate on recrawl_internal.page (page_id) where pinned_rate is not null;
        comment on column recrawl_internal.setting.shortest_interval is
            'interval: no page is fetched more often, nor two fetches of one scheduled closer, unless somebody says '
            'when it is due; none = no limit.';
    """)


def downgrade() -> None:
    op.execute("""
        drop view if exists recrawl_internal.page_to_allocate, recrawl_internal.host_to_allocate;
        drop function if exists recrawl_internal.new_pages_to_allocate;
        drop function if exists recrawl_internal.spent_of_late;
        drop function if exists recrawl_internal.policy_days;
        drop function if exists recrawl_internal.start_job(text, interval, timestamptz);
        drop function if exists recrawl_internal.keep_job(bigint, interval);
        alter table recrawl_internal.job drop column as_of;
        drop index if exists recrawl_internal.page_with_pinned_rate;
        comment on column recrawl_internal.setting.shortest_interval is
            'interval: no page is fetched more often, nor two fetches of one scheduled closer; none = no limit.';
        update recrawl_internal.replayed set digest = '';
    """)
