"""Crawlers say when a page is wanted next, that it is not any more, or that they decline it; what doors ask."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute("""
        -- They have an argument or a column more now, or ask one that has.
        drop view if exists recrawl.page_status, recrawl_internal.page_to_allocate;
        drop function if exists recrawl.report_pages, recrawl_internal.report_pages_at,
            recrawl_internal.judged_results, recrawl_internal.matched_results, recrawl_internal.checked,
            recrawl_internal.takes_part, recrawl.next_pages, recrawl_internal.next_pages_at,
            recrawl_internal.hosts_to_visit, recrawl_internal.give_back;

        create type recrawl.leased_page as (
            page_id     bigint,
            lease_id    bigint,
            lease_until timestamptz
        );
        comment on type recrawl.leased_page is
            'One row of leases_of: a page that is out, and the lease that it is out on.';

        alter type recrawl_internal.result_element add attribute due timestamptz, add attribute declined boolean;
        alter type recrawl_internal.result add attribute said_due timestamptz, add attribute due_is text;

        alter table recrawl_internal.page
            add column due_is text constraint "due_is must be one of" check (due_is in ('set', 'done', 'declined')),
            add column found_at timestamptz;
        comment on column recrawl_internal.page.due_is is
            'What its due time is: set by its crawler; never, as it is done or was declined; else null.';
        comment on column recrawl_internal.page.found_at is
            'When it was taken in; null = before recrawl kept that.';
    """)


def downgrade() -> None:
    op.execute("""
        drop view if exists recrawl.page_status, recrawl_internal.page_to_allocate;
        drop function if exists recrawl.report_pages, recrawl_internal.report_pages_at,
            recrawl_internal.judged_results, recrawl_internal.matched_results, recrawl_internal.checked,
            recrawl_internal.takes_part, recrawl_internal.is_promised, recrawl.next_pages,
            recrawl_internal.next_pages_at, recrawl_internal.hosts_to_visit, recrawl.leases_of,
            recrawl_internal.leases_of_at;
        drop type recrawl.leased_page;
        alter type recrawl_internal.result_element drop attribute due, drop attribute declined;
        alter type recrawl_internal.result drop attribute said_due, drop attribute due_is;
        alter table recrawl_internal.page drop column due_is, drop column found_at;
        update recrawl_internal.replayed set digest = '';
    """)
