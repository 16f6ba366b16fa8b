"""What an attack and the first real crawlers found."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute("""
        -- As an interval ten years are 3,600 days, in seconds 3,652.5.
        alter table recrawl_internal.setting
            drop constraint "longest_interval must lie between 1 minute and 10 years",
            drop constraint "keep_log must lie between 1 minute and 10 years",
            add constraint "longest_interval must lie between 1 minute and 10 years"
            check (longest_interval between '1 minute' and '87660 hours'),
            add constraint "keep_log must lie between 1 minute and 10 years"
            check (keep_log between '1 minute' and '87660 hours');
        -- Days and months are as long as the session's time zone and the month say: intervals are kept in seconds.
        update recrawl_internal.setting set
            default_gap = make_interval(secs => extract(epoch from default_gap)::float8),
            max_ahead = make_interval(secs => extract(epoch from max_ahead)::float8),
            longest_interval = make_interval(secs => extract(epoch from longest_interval)::float8),
            shortest_interval = make_interval(secs => extract(epoch from shortest_interval)::float8),
            keep_log = make_interval(secs => extract(epoch from keep_log)::float8);
        update recrawl_internal.host set gap = make_interval(secs => extract(epoch from gap)::float8)
        where gap is not null;
        comment on column recrawl_internal.setting.shortest_interval is
            'interval: no page is fetched more often, nor two fetches of one scheduled closer; none = no limit.';
        drop function if exists recrawl_internal.next_due(timestamptz, timestamptz, real);

        -- Whoever fetches learns of hosts that are held meanwhile.
        alter type recrawl.report_result add attribute held_until timestamptz cascade;
        comment on type recrawl.report_result is
            'One row per reported element, in order: code is ok, duplicate, stale_lease, unknown_page or invalid; '
            'held_until says that the page''s host is held until then, so nothing of it may be requested.';
        create type recrawl.held_page as (
            lease_id   bigint,
            page_id    bigint,
            host       text,
            held_until timestamptz
        );
        comment on type recrawl.held_page is 'A leased page that must not be requested before held_until: release it.';

        create type recrawl_internal.slot_of_host as (
            host_id  bigint,
            slot     timestamptz,
            start_by timestamptz
        );
        comment on type recrawl_internal.slot_of_host is 'A time in which a request to a host may start.';

        create sequence recrawl_internal.default_gap_since;

        -- report_pages takes all that report takes.
        drop function if exists recrawl.report_pages(
            bigint[], bigint[], int[], boolean[], timestamptz[], text[], text[], timestamptz[]);
        drop function if exists recrawl_internal.report_pages_at(
            timestamptz, bigint[], bigint[], int[], boolean[], timestamptz[], text[], text[], timestamptz[]);
        drop function if exists recrawl_internal.record_pass(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
            bigint, recrawl_internal.setting, recrawl_internal.host_terms);
        drop function if exists recrawl_internal.block_until(bigint, timestamptz, text, smallint, timestamptz);
        drop view if exists recrawl.opic_run;
        alter table recrawl_internal.opic add column error float8;
        comment on column recrawl_internal.opic.residual is
            'A bound on how far the last sweep moved hub and authority scores, in all, each adding up to 1; of '
            'importance, if that is more. The error may be a hundred times as large.';
        comment on column recrawl_internal.opic.error is
            'How far off these scores are, in all, by estimate: sweeps end once it is as small as wanted. Null for '
            'runs that did not estimate it.';
        comment on column recrawl_internal.opic.converged is
            'Whether the error is as small as wanted; if not, the next run goes on from here.';
        create sequence recrawl_internal.latest_tick;
        create table recrawl_internal.pulling_in (
            only_row    boolean primary key default true check (only_row),
            wrong_until timestamptz,
            host_id     bigint  not null default 0,
            page_id     bigint  not null default 0,
            passed_over int     not null default 0,
            hosts       int     not null default 0,
            leases      int     not null default 0,
            pages       int     not null default 0
        );
        insert into recrawl_internal.pulling_in default values;
        comment on table recrawl_internal.pulling_in is
            'How far it is done, after the clock was ahead, to pull in what lies in the future: see '
            'sql/upkeep/clock.sql.';
        comment on column recrawl_internal.pulling_in.only_row is 'Holds the table to one row.';
        comment on column recrawl_internal.pulling_in.wrong_until is
            'The latest time at which anybody ticked; null = the clock was not ahead.';
        comment on column recrawl_internal.pulling_in.host_id is 'Hosts up to this one were looked at in this round.';
        comment on column recrawl_internal.pulling_in.page_id is 'Pages up to this one were looked at in this round.';
        comment on column recrawl_internal.pulling_in.passed_over is
            'Hosts and pages that somebody held in this round: another follows.';
        comment on column recrawl_internal.pulling_in.hosts is 'Hosts pulled in so far.';
        comment on column recrawl_internal.pulling_in.leases is 'Leases ended so far.';
        comment on column recrawl_internal.pulling_in.pages is 'Pages pulled in so far.';

        create table recrawl_internal.link_later (
            at      timestamptz not null default clock_timestamp(),
            page_id bigint,
            key     uuid        not null,
            url     text        not null,
            worth   float8,
            depth   int         not null,
            tries   int         not null default 0
        ) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
        create index link_later_turn on recrawl_internal.link_later (tries, at);
        create index link_later_held on recrawl_internal.link_later (key) where tries > 0;
        comment on table recrawl_internal.link_later is
            'Links to what somebody else was taking in, in a transaction that stayed open: upkeep takes them in later.';
        comment on column recrawl_internal.link_later.at is 'Wall clock when written.';
        comment on column recrawl_internal.link_later.page_id is 'The page that links; null = it redirects.';
        comment on column recrawl_internal.link_later.key is 'Of the page that it links to.';
        comment on column recrawl_internal.link_later.url is 'What it links to, as reported.';
        comment on column recrawl_internal.link_later.worth is 'The value that a new page starts with.';
        comment on column recrawl_internal.link_later.depth is 'Links from where the crawl began.';
        comment on column recrawl_internal.link_later.tries is
            'How often upkeep found it held: reports do not wait for it any more.';

        alter table recrawl_internal.replayed add column in_force text;
        comment on column recrawl_internal.replayed.in_force is
            'What sql/ had made by then, and who might use it, as a hash: restores lose rights, people change them.';

        -- Without a key, PostgreSQL refuses what changes a row as soon as somebody publishes all tables. Costs nothing
        -- where wal_level is not logical.
        alter table recrawl_internal.host replica identity full;
        alter table recrawl_internal.queue replica identity full;
        alter table recrawl_internal.new_page replica identity full;
        alter table recrawl_internal.inbox replica identity full;
        alter table recrawl_internal.graph_news replica identity full;
        alter table recrawl_internal.link_later replica identity full;
        alter table recrawl_internal.fetch_log replica identity full;
        alter table recrawl_internal.fetch_log_0 replica identity full;
        alter table recrawl_internal.fetch_log_1 replica identity full;
        alter table recrawl_internal.fetch_log_2 replica identity full;
        alter table recrawl_internal.fetch_log_3 replica identity full;

        drop view if exists recrawl_internal.host_to_allocate, recrawl_internal.host_with_new_pages,
            recrawl_internal.host_with_pages_coming;
        alter table recrawl_internal.allocation
            alter column price drop not null,
            alter column utility drop not null,
            alter column polite_bound drop not null,
            alter column unpolite_bound drop not null;
        comment on column recrawl_internal.allocation.price is
            'What the last fetch of the budget earns per day; hosts at their cap ask more. Null = there is none that '
            'would not earn more than any number.';
        comment on column recrawl_internal.allocation.utility is
            'The objective reached, per unit of value; null = a loss without limit, as pages that change are not '
            'fetched.';

        -- Learning. Null unless something is the matter: such a column takes no room.
        alter table recrawl_internal.page
            add column base_at timestamptz,
            add column planned_due timestamptz,
            add column is_denied boolean;
        comment on column recrawl_internal.page.base_at is
            'When the version was fetched that the next one is compared with, whose etag, last_modified, content_hash '
            'and sketch these are, where the fetches since then brought nothing to compare; null = the last fetch.';
        comment on column recrawl_internal.page.planned_due is
            'When it was due before a hint or fetch_now brought it forward; null = nothing did since the last fetch.';
        comment on column recrawl_internal.page.is_denied is 'robots.txt forbids it, as of the last report; else null.';
        comment on column recrawl_internal.page.etag is 'Validator of the fetch that the next one is compared with.';
        comment on column recrawl_internal.page.last_modified is
            'Validator of the fetch that the next one is compared with.';
        comment on column recrawl_internal.page.content_hash is
            'Of the fetch that the next one is compared with, in whatever form the crawler sends.';
        comment on column recrawl_internal.page.sketch is
            'Min-hash sketch of the fetch that the next one is compared with.';
        drop function if exists recrawl_internal.matched_results(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean);
        drop function if exists recrawl_internal.judged_results(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
            bigint, recrawl_internal.setting, recrawl_internal.host_terms);

        -- 60 days. Whoever wanted none could not be told from whoever never asked.
        alter table recrawl_internal.setting alter column longest_interval set default '1440 hours';
        update recrawl_internal.setting set longest_interval = '1440 hours' where longest_interval is null;
        comment on column recrawl_internal.setting.longest_interval is
            'interval: no page waits longer to be fetched, where half of the budget and of its host''s slots suffice; '
            'none = no limit.';
        -- queue_status tells whether it estimates.
        drop view if exists recrawl.queue_status;
        drop function if exists recrawl_internal.sample_queue(timestamptz);
    """)


def downgrade() -> None:
    # Views and inlined functions are bound to the columns and types that they name, some of which go further down.
    op.execute("""
        do $$
        declare
            views     text;
            functions text;
        begin
            select string_agg(c.oid::regclass::text, ', ') into views
            from pg_class c
            where c.relnamespace in ('recrawl'::regnamespace, 'recrawl_internal'::regnamespace) and c.relkind = 'v';
            select string_agg(p.oid::regprocedure::text, ', ') into functions
            from pg_proc p
            where p.pronamespace in ('recrawl'::regnamespace, 'recrawl_internal'::regnamespace)
              and p.prosqlbody is not null;
            execute 'drop view if exists ' || coalesce(views, 'recrawl.queue_status');
            execute 'drop function if exists ' || coalesce(functions, 'recrawl_internal.none_is_left()');
        end $$;
        update recrawl_internal.setting set
            longest_interval = case when longest_interval > '10 years' then '10 years' else longest_interval end,
            keep_log = case when keep_log > '10 years' then '10 years' else keep_log end;
        alter table recrawl_internal.setting
            drop constraint "longest_interval must lie between 1 minute and 10 years",
            drop constraint "keep_log must lie between 1 minute and 10 years",
            add constraint "longest_interval must lie between 1 minute and 10 years"
            check (longest_interval between '1 minute' and '10 years'),
            add constraint "keep_log must lie between 1 minute and 10 years"
            check (keep_log between '1 minute' and '10 years');
        comment on column recrawl_internal.setting.shortest_interval is
            'interval: no page is fetched more often; none = no limit.';
        drop type recrawl.held_page, recrawl_internal.slot_of_host cascade;
        alter type recrawl.report_result drop attribute held_until cascade;
        comment on type recrawl.report_result is
            'One row per reported element, in order: code is ok, duplicate, stale_lease, unknown_page or invalid.';
        drop function if exists recrawl.report_pages(
            bigint[], bigint[], int[], boolean[], timestamptz[], text[], text[], timestamptz[],
            int[], int[], jsonb[], float8[], text[], float8[], text[], boolean[], jsonb[]);
        drop function if exists recrawl_internal.report_pages_at(
            timestamptz, bigint[], bigint[], int[], boolean[], timestamptz[], text[], text[], timestamptz[],
            int[], int[], jsonb[], float8[], text[], float8[], text[], boolean[], jsonb[]);
        drop function if exists recrawl_internal.record_pass(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
            bigint, recrawl_internal.setting, recrawl_internal.host_terms);
        alter table recrawl_internal.opic drop column error;
        comment on column recrawl_internal.opic.residual is
            'A bound on how far the last sweep moved hub and authority scores, in all, each adding up to 1; of '
            'importance, if that is more.';
        comment on column recrawl_internal.opic.converged is
            'Whether the residual is as small as wanted; if not, the next run goes on from here.';
        drop function recrawl_internal.pull_in(timestamptz, int);
        drop function recrawl_internal.take_links_in(timestamptz, int);
        drop table recrawl_internal.pulling_in, recrawl_internal.link_later;
        drop sequence recrawl_internal.latest_tick, recrawl_internal.default_gap_since;
        delete from recrawl_internal.allocation
        where price is null or utility is null or polite_bound is null or unpolite_bound is null;
        alter table recrawl_internal.allocation
            alter column price set not null,
            alter column utility set not null,
            alter column polite_bound set not null,
            alter column unpolite_bound set not null;
        comment on column recrawl_internal.allocation.price is
            'What the last fetch of the budget earns per day; hosts at their cap ask more.';
        comment on column recrawl_internal.allocation.utility is 'The objective reached, per unit of value.';
        comment on column recrawl_internal.setting.longest_interval is
            'interval: no page waits longer to be fetched, where half of its host''s slots suffice; none = no limit.';
        alter table recrawl_internal.setting alter column longest_interval drop default;
        update recrawl_internal.setting set longest_interval = null where longest_interval = '60 days';

        drop function if exists recrawl_internal.matched_results(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean);
        drop function if exists recrawl_internal.judged_results(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
            bigint, recrawl_internal.setting, recrawl_internal.host_terms);
        alter table recrawl_internal.page drop column base_at, drop column planned_due, drop column is_denied;
        comment on column recrawl_internal.page.etag is 'Validator of the last successful fetch.';
        comment on column recrawl_internal.page.last_modified is 'Validator of the last successful fetch.';
        comment on column recrawl_internal.page.content_hash is
            'Of the last successful fetch, in whatever form the crawler sends.';
        comment on column recrawl_internal.page.sketch is 'Min-hash sketch of the last successful fetch.';

        -- queue_status tells whether it estimates.
        drop view if exists recrawl.queue_status;
        drop function if exists recrawl_internal.sample_queue(timestamptz);
        update recrawl_internal.replayed set digest = '';
        alter table recrawl_internal.replayed drop column in_force;
        alter table recrawl_internal.host replica identity default;
        alter table recrawl_internal.queue replica identity default;
        alter table recrawl_internal.new_page replica identity default;
        alter table recrawl_internal.inbox replica identity default;
        alter table recrawl_internal.graph_news replica identity default;
        alter table recrawl_internal.fetch_log replica identity default;
        alter table recrawl_internal.fetch_log_0 replica identity default;
        alter table recrawl_internal.fetch_log_1 replica identity default;
        alter table recrawl_internal.fetch_log_2 replica identity default;
        alter table recrawl_internal.fetch_log_3 replica identity default;
    """)
