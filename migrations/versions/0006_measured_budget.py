"""A budget for those who do not know theirs; what was handed out, for those who do."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting add column budget_is_measured boolean not null default false;
        comment on column recrawl_internal.setting.budget_is_measured is
            'boolean: whether budget is what crawlers are seen to do; set_setting(''budget'', ''measured'') sets it.';
        comment on column recrawl_internal.setting.budget is
            'fetches per day: of new pages and revisits together; none = no limit to new pages, and as many revisits '
            'as frequency times the pages that were fetched before; measured = as many as crawlers are seen to do, '
            'raised while they ask and get less than they want, lowered while pages wait for them.';

        create sequence recrawl_internal.short_ask_count minvalue 0 start 0;
        create table recrawl_internal.budget_step (
            at         timestamptz not null,
            asks       bigint not null,
            short      bigint not null,
            handed_out bigint not null
        );
        create index budget_step_at on recrawl_internal.budget_step (at);
        alter table recrawl_internal.budget_step replica identity full;
        comment on table recrawl_internal.budget_step is
            'Where the counts stood each five minutes of the last day in which crawlers asked, as far as the budget is '
            'measured.';
        comment on column recrawl_internal.budget_step.at is 'When that was.';
        comment on column recrawl_internal.budget_step.asks is 'How often crawlers had asked for pages.';
        comment on column recrawl_internal.budget_step.short is 'How often they had got fewer than they asked for.';
        comment on column recrawl_internal.budget_step.handed_out is 'How many pages they had got.';

        create type recrawl_internal.measured as (
            short_share float8,
            now         float8,
            hour        float8,
            most        float8,
            in_a_day    float8
        );
        comment on type recrawl_internal.measured is
            'Of crawlers: what share of their asks came out short of late; what they got in the last step and in the '
            'last hour; in the last hour in which nothing was short; and what that comes to where they pause and '
            'revisits wait for them. Pages a day.';

        alter table recrawl_internal.allocation add column handed_out bigint;
        comment on column recrawl_internal.allocation.handed_out is
            'How many pages had been handed out by then: runs to come see whether too many or too few were.';
    """)


def downgrade() -> None:
    op.execute("""
        -- Bound to what they name, or to what goes further down.
        drop view if exists recrawl.settings, recrawl_internal.spent_of_late, recrawl_internal.page_to_allocate;
        drop function if exists recrawl_internal.is_promised(recrawl_internal.page);
        alter table recrawl_internal.allocation drop column handed_out;
        drop table recrawl_internal.budget_step;
        drop type recrawl_internal.measured cascade;
        drop sequence recrawl_internal.short_ask_count;
        alter table recrawl_internal.setting drop column budget_is_measured;
        comment on column recrawl_internal.setting.budget is
            'fetches per day: of new pages and revisits together; none = no limit to new pages, and as many revisits '
            'as frequency times the pages that were fetched before.';
        update recrawl_internal.replayed set digest = '';
    """)
