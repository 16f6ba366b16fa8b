"""A person steers: how often pages are fetched at all events, and by how much more those of a pattern are worth."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute("""
        create type recrawl.steered_page as (
            ord     int,
            page_id bigint,
            code    text,
            detail  text
        );
        comment on type recrawl.steered_page is
            'One row per page of set_interval, in order: code is ok, not_live, unknown_page or invalid.';

        alter table recrawl_internal.page
            add pinned_interval interval
                constraint "pinned_interval must be positive" check (pinned_interval > '0'),
            add boost real;
        comment on column recrawl_internal.page.pinned_interval is
            'How long it is from one fetch to the next, where somebody pinned that; null = its price decides.';
        comment on column recrawl_internal.page.boost is
            'What its value is multiplied by: the product of the boosts that its URL matches; null = nothing.';

        comment on column recrawl_internal.page.value is
            'What its freshness is worth, its boost included: pinned, or found by the job opic, or at first a part of '
            'the value of the page that linked to it.';

        alter table recrawl_internal.host_terms add pins_kept float8;
        comment on column recrawl_internal.host_terms.pins_kept is
            'Its pages whose interval is pinned get this share of the fetches that they ask for; null = the common '
            'share, and there all of it.';

        alter table recrawl_internal.allocation add pinned float8, add pinned_wanted float8;
        comment on column recrawl_internal.allocation.pinned is
            'Fetches per day, of those spent, given to pages whose interval is pinned.';
        comment on column recrawl_internal.allocation.pinned_wanted is
            'Fetches per day that these pages ask for: more than they are given where the budget or the slots of '
            'their hosts do not suffice.';

        create table recrawl_internal.boost (
            pattern     text        primary key,
            times       real,
            since       timestamptz not null,
            done_to     bigint,
            last_page   bigint,
            pages       bigint      not null default 0,
            in_force_at timestamptz
        );
        comment on table recrawl_internal.boost is
            'Regular expressions; the value of a page whose canonical URL matches is multiplied.';
        comment on column recrawl_internal.boost.pattern is 'POSIX regular expression over the canonical URL.';
        comment on column recrawl_internal.boost.times is
            'By how much; null = it was ended, and pages are about to be worth what they were.';
        comment on column recrawl_internal.boost.since is 'When somebody said so.';
        comment on column recrawl_internal.boost.done_to is
            'Pages up to this one follow it already; null = nobody has begun.';
        comment on column recrawl_internal.boost.last_page is 'Pages after this one followed it from the beginning.';
        comment on column recrawl_internal.boost.pages is
            'Live pages that match, of those that were there when somebody said so.';
        comment on column recrawl_internal.boost.in_force_at is 'When all pages followed it; null = not yet.';

        -- They have an argument or a column more now.
        drop function if exists recrawl_internal.judged_results, recrawl_internal.matched_results,
            recrawl_internal.put_prices, recrawl_internal.put_values;
    """)


def downgrade() -> None:
    op.execute("""
        drop view if exists recrawl.boosts, recrawl.page_status, recrawl.host_status, recrawl.allocation_run,
            recrawl_internal.page_to_allocate;
        drop function if exists recrawl.set_interval, recrawl_internal.set_interval_at, recrawl.boost,
            recrawl_internal.boost_at, recrawl_internal.boost_of, recrawl_internal.frequency_of,
            recrawl_internal.judged_results, recrawl_internal.matched_results, recrawl_internal.put_prices,
            recrawl_internal.put_values;
        drop table recrawl_internal.boost;
        alter table recrawl_internal.allocation drop pinned, drop pinned_wanted;
        alter table recrawl_internal.host_terms drop pins_kept;
        alter table recrawl_internal.page drop pinned_interval, drop boost;
        drop type recrawl.steered_page;
        comment on column recrawl_internal.page.value is
            'What its freshness is worth: pinned, or found by the job opic, or at first a part of the value of the '
            'page that linked to it.';
        update recrawl_internal.replayed set digest = '';
    """)
