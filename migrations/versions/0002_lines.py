"""Two lines of hosts: those with due revisits, first come first served, and those with new pages, the best first."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting
            add column breadth real not null default 0.02
            constraint "breadth must lie between 0 and 1"
            check (breadth between 0 and 1);
        comment on column recrawl_internal.setting.breadth is
            'share: of the calls for new pages that go round all classes of value, so that low ones do not wait for '
            'ever.';
        comment on column recrawl_internal.setting.discovery is
            'share: of all fetches that go to new pages while revisits wait too.';

        alter table recrawl_internal.host
            drop column balance,
            add column new_ready_at timestamptz not null default 'infinity',
            add column new_credit real not null default 1,
            add column new_class smallint;
        comment on column recrawl_internal.host.ready_at is
            'Its place in the line of revisits, when next_pages should look at them: greatest of its next slot, its '
            'first due page, its block and the time of writing. A place that has come stays, whatever the other line '
            'takes.';
        comment on column recrawl_internal.host.new_ready_at is
            'Its place in the line of new pages, among those of its class: the same, without a due page.';
        comment on column recrawl_internal.host.new_class is
            'Its class in the line of new pages, see class_in_line(); null = it has none.';
        comment on column recrawl_internal.host.new_credit is
            'While revisits are due: how many new pages it may give before the next of them.';
        create index host_new on recrawl_internal.host (new_class, new_ready_at) where new_class is not null;
        update recrawl_internal.host set
            new_class = greatest(0, least(31, 19 - floor(ln(greatest(-head_new_rank::float8, 1e-30)) / ln(2::float8)))),
            new_ready_at = ready_at,
            ready_at = greatest(ready_at, head_due)
        where head_new_id is not null;

        alter table recrawl_internal.lease add column new_pages int not null default 0;
        comment on column recrawl_internal.lease.new_pages is 'How many of its pages were new.';

        -- Beside what the budget would have come to since 1970, see sql/hand_out/pace.sql.
        create sequence recrawl_internal.fetch_count minvalue 0 start 0;
        create sequence recrawl_internal.new_count minvalue 0 start 0;
        comment on column recrawl_internal.setting.budget is
            'fetches per day: of new pages and revisits together; none = no limit to new pages, and as many revisits '
            'as frequency times the pages that were fetched before.';

        alter table recrawl_internal.allocation
            add column new_pages float8 not null default 0,
            add column newest_page bigint;
        comment on column recrawl_internal.allocation.budget is
            'Fetches per day that could be spent, those of new pages included.';
        comment on column recrawl_internal.allocation.spent is
            'Fetches per day given to pages; less than the budget and new pages leave where the hosts'' gaps, or the '
            'shortest interval, leave no use for it.';
        comment on column recrawl_internal.allocation.new_pages is
            'Fetches per day that new pages were reckoned to take.';
        comment on column recrawl_internal.allocation.newest_page is
            'The newest page when the pages were read: how many are found is seen by the runs to come.';

        create type recrawl_internal.visits as (
            due_hosts  tid[],
            new_hosts  tid[],
            due_pages  int,
            new_pages  int,
            due_short  boolean,
            new_short  boolean,
            worst_rank real
        );
        comment on type recrawl_internal.visits is
            'The hosts that a round of next_pages visits, from either line, and how many pages they are to give; '
            'whether a line has no more hosts; new pages worse than worst_rank stay.';

        create sequence recrawl_internal.new_classes minvalue 0 start 0;
        select setval('recrawl_internal.new_classes', coalesce(bit_or(1::bigint << new_class), 0))
        from recrawl_internal.host;
        do $$
        begin
            for class in 0 .. 32 loop
                execute 'create sequence recrawl_internal.new_horizon_' || class;
            end loop;
        end $$;
    """)


def downgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting drop column breadth;
        comment on column recrawl_internal.setting.discovery is
            'share: of a host''s slots that go to new pages while revisits wait too.';

        drop view if exists recrawl.host_status, recrawl.allocation_run;
        drop view if exists recrawl_internal.host_to_allocate, recrawl_internal.host_with_pages_coming;
        alter table recrawl_internal.allocation drop column new_pages, drop column newest_page;
        comment on column recrawl_internal.allocation.budget is 'Fetches per day that could be spent.';
        comment on column recrawl_internal.allocation.spent is
            'Fetches per day given to pages; less than the budget where the hosts'' gaps, or the shortest interval, '
            'leave no use for it.';
        update recrawl_internal.host set ready_at = greatest(new_ready_at, now()) where head_new_id is not null;
        drop index recrawl_internal.host_new;
        alter table recrawl_internal.host
            drop column new_ready_at, drop column new_credit, drop column new_class,
            add column balance real not null default 0;
        comment on column recrawl_internal.host.ready_at is
            'When next_pages should look at the host: greatest of its next slot, its first due page, its block and the '
            'time of writing.';
        comment on column recrawl_internal.host.balance is
            'Whose turn it is, new pages (negative) or revisits (positive): stride scheduling by the setting '
            'discovery.';

        alter table recrawl_internal.lease drop column new_pages;
        drop type recrawl_internal.visits cascade;
        comment on column recrawl_internal.setting.budget is
            'fetches per day: over all pages that were fetched before; none = as many times frequency as there are '
            'such pages.';
        drop sequence recrawl_internal.fetch_count, recrawl_internal.new_count;
        drop sequence recrawl_internal.new_classes;
        do $$
        begin
            for class in 0 .. 32 loop
                execute 'drop sequence recrawl_internal.new_horizon_' || class;
            end loop;
        end $$;
    """)
