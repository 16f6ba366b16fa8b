"""What a crawler needs beside pages: robots.txt for all, slots for requests that are no pages, hints with a time."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute("""
        create type recrawl.slot as (
            fetch_at timestamptz,
            start_by timestamptz,
            wait     interval
        );
        comment on type recrawl.slot is
            'One row of take_slot: a request to the host may begin between fetch_at and start_by (wait is fetch_at as '
            'an interval from now).';

        create type recrawl.site_robots as (
            ord      int,
            site     text,
            status   int,
            rules    text,
            good_for interval
        );
        comment on type recrawl.site_robots is
            'One row of robots, for each URL whose site''s robots.txt is known: ord is the place of the URL, rules the '
            'text (null = everything is allowed), good_for how long from now it need not be fetched again.';

        create table recrawl_internal.robots (
            site        text        primary key,
            host_id     bigint      not null,
            good_until  timestamptz not null,
            crawl_delay interval,
            status      smallint    not null,
            rules       text
        );
        create index robots_of_host on recrawl_internal.robots (host_id);
        comment on table recrawl_internal.robots is 'What robots.txt said, by site, for all crawlers.';
        comment on column recrawl_internal.robots.site is
            'Scheme, host and port, as a canonical URL begins: each has a robots.txt of its own.';
        comment on column recrawl_internal.robots.host_id is 'Its host, whose gap all its sites share.';
        comment on column recrawl_internal.robots.good_until is 'To be fetched again from then on.';
        comment on column recrawl_internal.robots.crawl_delay is
            'What it asks for; the host takes the longest of its sites.';
        comment on column recrawl_internal.robots.status is 'Of the last answer.';
        comment on column recrawl_internal.robots.rules is 'The text; null = there is none, everything is allowed.';

        -- They have an argument more now.
        drop function if exists recrawl.release(bigint, bigint[]), recrawl.hint_change(bigint[], float8, float8),
            recrawl.next_pages(int, interval, interval, int),
            recrawl_internal.next_pages_at(timestamptz, int, interval, interval, int),
            recrawl_internal.check_pop(int, interval, interval, int, interval),
            recrawl_internal.hand_out(timestamptz, recrawl_internal.visits, numeric, timestamptz, int, timestamptz,
                                      bigint, int, recrawl_internal.setting),
            recrawl_internal.release_at(timestamptz, bigint, bigint[]),
            recrawl_internal.hint_change_at(timestamptz, bigint[], float8, float8);
    """)


def downgrade() -> None:
    op.execute("""
        drop function if exists recrawl.take_slot, recrawl_internal.take_slot_at, recrawl.robots,
            recrawl_internal.robots_at, recrawl.set_robots, recrawl_internal.set_robots_at,
            recrawl.release, recrawl_internal.release_at, recrawl.hint_change, recrawl_internal.hint_change_at,
            recrawl.next_pages, recrawl_internal.next_pages_at, recrawl_internal.check_pop, recrawl_internal.hand_out;
        drop table recrawl_internal.robots;
        drop type recrawl.site_robots, recrawl.slot;
        update recrawl_internal.replayed set digest = '';
    """)
