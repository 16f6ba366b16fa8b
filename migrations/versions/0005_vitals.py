"""What happened, minute by minute and hour by hour."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting
            add column keep_vitals interval not null default '48 hours'
            constraint "keep_vitals must lie between 3 hours and 400 days"
            check (keep_vitals between '3 hours' and '400 days'),
            add column keep_history interval not null default '9600 hours'
            constraint "keep_history must lie between 1 day and 100 years"
            check (keep_history between '1 day' and '100 years');
        comment on column recrawl_internal.setting.keep_vitals is
            'interval: how long the view vitals keeps its rows, one a minute.';
        comment on column recrawl_internal.setting.keep_history is
            'interval: how long vitals_by_hour, events and the runs of jobs are kept; the last runs always are.';

        -- Written once by every report. Without an index: it is only appended to, read and truncated.
        create table recrawl_internal.pulse (
            part         int         not null,
            at           timestamptz not null,
            letters      text        not null,
            late         real[],
            lost         float8
        ) partition by list (part);
        comment on table recrawl_internal.pulse is
            'What each report brought, a row a call, for the last half an hour. The job vitals adds it up.';
        comment on column recrawl_internal.pulse.part is 'Parts take turns; see log_part().';
        comment on column recrawl_internal.pulse.at is 'When it was reported.';
        comment on column recrawl_internal.pulse.letters is
            'A letter a result: changed, unchanged, nothing told, first, missing, error, throttled, denied; stale, '
            'repeated, x = refused.';
        comment on column recrawl_internal.pulse.late is 'How late each revisit was, in seconds.';
        comment on column recrawl_internal.pulse.lost is 'Whole periods that passed before them; null = none.';
        do $$
        declare
            quarter text;
            col     record;
        begin
            for part in 0 .. 3 loop
                quarter := 'recrawl_internal.pulse_' || part;
                execute 'create table ' || quarter || ' partition of recrawl_internal.pulse for values in ('
                        || part || ')';
                execute 'alter table ' || quarter || ' replica identity full';
                execute 'comment on table ' || quarter || ' is ''A quarter of pulse.''';
                for col in
                    select a.attname as name, col_description(a.attrelid, a.attnum) as meaning
                    from pg_attribute a where a.attrelid = 'recrawl_internal.pulse'::regclass and a.attnum > 0
                loop
                    execute 'comment on column ' || quarter || '.' || col.name || ' is ' || quote_literal(col.meaning);
                end loop;
            end loop;
        end $$;
        alter table recrawl_internal.pulse replica identity full;

        create table recrawl_internal.vital (
            at            timestamptz primary key,
            fetches       bigint not null default 0,
            changed       bigint not null default 0,
            unchanged     bigint not null default 0,
            first         bigint not null default 0,
            missing       bigint not null default 0,
            failed        bigint not null default 0,
            throttled     bigint not null default 0,
            denied        bigint not null default 0,
            untold        bigint not null default 0,
            stale         bigint not null default 0,
            duplicate     bigint not null default 0,
            refused       bigint not null default 0,
            late_1m       bigint not null default 0,
            late_10m      bigint not null default 0,
            late_1h       bigint not null default 0,
            late_6h       bigint not null default 0,
            late_1d       bigint not null default 0,
            late_more     bigint not null default 0,
            late_seconds  float8 not null default 0,
            lost          float8 not null default 0,
            handed_out    bigint not null default 0,
            expired       bigint not null default 0,
            asks          bigint not null default 0,
            empty_asks    bigint not null default 0,
            new_pages     bigint not null default 0,
            due           bigint,
            due_crawler   bigint,
            due_gap       bigint,
            due_blocked   bigint,
            new_waiting   bigint,
            leased        bigint,
            pages         bigint,
            hosts         bigint,
            hosts_ready   bigint,
            hosts_blocked bigint,
            hosts_capped  bigint,
            ready_wait    interval,
            inbox_wait    interval,
            fresh         real,
            fresh_error   real,
            covered       real,
            promised      real,
            possible      real,
            unpolite      real,
            budget        float8
        );
        comment on table recrawl_internal.vital is
            'What happened in each minute, and how things stood at its end. Written by the job vitals alone.';
        comment on column recrawl_internal.vital.at is 'When the minute began.';
        comment on column recrawl_internal.vital.fetches is
            'Fetches reported in it: changed, unchanged, first, missing, failed, throttled and denied together.';
        comment on column recrawl_internal.vital.changed is 'Of them, pages that had changed.';
        comment on column recrawl_internal.vital.unchanged is
            'Of them, pages that had not changed, as far as anything tells.';
        comment on column recrawl_internal.vital.untold is 'Those of the unchanged of which nothing tells.';
        comment on column recrawl_internal.vital.first is 'Of them, first successful fetches of a page.';
        comment on column recrawl_internal.vital.missing is
            'Of them, pages that were not there: 404, 410 and the like, or moved for good.';
        comment on column recrawl_internal.vital.failed is 'Of them, failures: 5xx, or no answer.';
        comment on column recrawl_internal.vital.throttled is 'Of them, refused by the host with 429 or 503.';
        comment on column recrawl_internal.vital.denied is 'Of them, forbidden by robots.txt.';
        comment on column recrawl_internal.vital.stale is
            'Reports on a lease that did not hold the page, beside the fetches.';
        comment on column recrawl_internal.vital.duplicate is 'Reports of what was reported before.';
        comment on column recrawl_internal.vital.refused is 'Reports that were invalid, or of an unknown page.';
        comment on column recrawl_internal.vital.late_1m is 'Revisits in a slot at most a minute after they were due.';
        comment on column recrawl_internal.vital.late_10m is 'Revisits 1 to 10 minutes late.';
        comment on column recrawl_internal.vital.late_1h is 'Revisits 10 minutes to an hour late.';
        comment on column recrawl_internal.vital.late_6h is 'Revisits 1 to 6 hours late.';
        comment on column recrawl_internal.vital.late_1d is 'Revisits 6 hours to a day late.';
        comment on column recrawl_internal.vital.late_more is 'Revisits more than a day late.';
        comment on column recrawl_internal.vital.late_seconds is 'How late these revisits were, in all, in seconds.';
        comment on column recrawl_internal.vital.lost is
            'Visits that were left out: whole periods that passed before a late one.';
        comment on column recrawl_internal.vital.handed_out is 'Pages handed out.';
        comment on column recrawl_internal.vital.expired is 'Pages that came back unreported when their lease ran out.';
        comment on column recrawl_internal.vital.asks is 'Calls of next_pages while the crawl was not paused.';
        comment on column recrawl_internal.vital.empty_asks is 'Those of them that got nothing.';
        comment on column recrawl_internal.vital.new_pages is 'Pages taken in.';
        comment on column recrawl_internal.vital.due is 'Revisits that are due, from a sample of the queue.';
        comment on column recrawl_internal.vital.due_crawler is
            'Of them, those that wait for a crawler only: their host is free.';
        comment on column recrawl_internal.vital.due_gap is
            'Of them, those that wait for their host''s gap, behind others of it or for the page that is out.';
        comment on column recrawl_internal.vital.due_blocked is 'Of them, those whose host is blocked.';
        comment on column recrawl_internal.vital.new_waiting is
            'Pages that were never handed out, from a sample.';
        comment on column recrawl_internal.vital.leased is 'Pages that are out.';
        comment on column recrawl_internal.vital.pages is
            'Pages taken in and not forgotten, as of the last count by host.';
        comment on column recrawl_internal.vital.hosts is 'Hosts, as of the last count.';
        comment on column recrawl_internal.vital.hosts_ready is 'Hosts with work that are free, counted to 1,000.';
        comment on column recrawl_internal.vital.hosts_blocked is 'Hosts that are blocked, as of the last count.';
        comment on column recrawl_internal.vital.hosts_capped is
            'Hosts whose gap, not the budget, decides, as of the last allocation.';
        comment on column recrawl_internal.vital.ready_wait is
            'How long the first free host with work has waited for a crawler; null = there is none.';
        comment on column recrawl_internal.vital.inbox_wait is
            'How long the oldest entry of the inbox has waited; null = it is empty.';
        comment on column recrawl_internal.vital.fresh is
            'Share of the value of the pages that allocation is for which is fresh by estimate, from a sample.';
        comment on column recrawl_internal.vital.fresh_error is 'Standard error of fresh, by the sample.';
        comment on column recrawl_internal.vital.covered is
            'Share of the value of all pages that was fetched at least once, from a sample.';
        comment on column recrawl_internal.vital.promised is
            'Share that the last allocation is to keep fresh; null where it is not for freshness.';
        comment on column recrawl_internal.vital.possible is
            'What that share could at most be within budget and gaps.';
        comment on column recrawl_internal.vital.unpolite is 'What it could at most be within the budget alone.';
        comment on column recrawl_internal.vital.budget is 'Fetches per day in force; null = none.';

        create table recrawl_internal.vital_hour (like recrawl_internal.vital including all);
        comment on table recrawl_internal.vital_hour is 'Sums, and means, of the minutes of each hour in vital.';
        comment on column recrawl_internal.vital_hour.at is 'When the hour began.';

        -- What the job vitals remembers from one minute to the next.
        create table recrawl_internal.vitals_state (
            only_row      boolean primary key default true check (only_row),
            handed_out    bigint not null default 0,
            expired       bigint not null default 0,
            asks          bigint not null default 0,
            leases        bigint not null default 0,
            page_id       bigint not null default 0,
            hosts_at      timestamptz,
            pages         bigint,
            hosts         bigint,
            hosts_blocked bigint,
            still_since   timestamptz
        );
        comment on table recrawl_internal.vitals_state is
            'What the job vitals remembers from one minute to the next: what had been counted, and how hosts stood.';
        comment on column recrawl_internal.vitals_state.only_row is 'Holds the table to one row.';
        comment on column recrawl_internal.vitals_state.handed_out is 'Where the sequence handed_out_count stood.';
        comment on column recrawl_internal.vitals_state.expired is 'Where the sequence expired_count stood.';
        comment on column recrawl_internal.vitals_state.asks is 'Where the sequence ask_count stood.';
        comment on column recrawl_internal.vitals_state.leases is 'Where the sequence lease_id stood.';
        comment on column recrawl_internal.vitals_state.page_id is 'Where the sequence page_id stood.';
        comment on column recrawl_internal.vitals_state.hosts_at is 'When all hosts were looked at last.';
        comment on column recrawl_internal.vitals_state.pages is 'How many pages they had.';
        comment on column recrawl_internal.vitals_state.hosts is 'How many there were.';
        comment on column recrawl_internal.vitals_state.hosts_blocked is 'How many of them were blocked.';
        comment on column recrawl_internal.vitals_state.still_since is
            'Since when nothing is reported though hosts are free; null = the crawl goes on.';
        insert into recrawl_internal.vitals_state (leases, page_id)
        select case when l.is_called then l.last_value else 0 end, case when p.is_called then p.last_value else 0 end
        from recrawl_internal.lease_id l, recrawl_internal.page_id p;

        create table recrawl_internal.late_host (
            host_id    bigint primary key,
            due        bigint      not null,
            oldest_due timestamptz not null,
            as_of      timestamptz not null
        );
        comment on table recrawl_internal.late_host is
            'The hosts whose revisits are longest due, as the job vitals found them.';
        comment on column recrawl_internal.late_host.host_id is 'The host.';
        comment on column recrawl_internal.late_host.due is 'Revisits of it that were due, counted to 10,000.';
        comment on column recrawl_internal.late_host.oldest_due is 'The oldest due time among them.';
        comment on column recrawl_internal.late_host.as_of is 'When this was found out.';

        create table recrawl_internal.held_back (
            host_id    bigint primary key,
            pages      bigint      not null,
            gap        interval    not null,
            slot_every interval    not null,
            wanted     float8,
            frequency  float8      not null,
            gain       float8      not null,
            as_of      timestamptz not null
        );
        comment on table recrawl_internal.held_back is
            'The hosts whose gap costs most, by the last allocation.';
        comment on column recrawl_internal.held_back.host_id is 'The host.';
        comment on column recrawl_internal.held_back.pages is 'Pages of it that took part.';
        comment on column recrawl_internal.held_back.gap is 'Least time between two requests to it.';
        comment on column recrawl_internal.held_back.slot_every is
            'Time between two slots: the gap, and the window in which a request may start.';
        comment on column recrawl_internal.held_back.wanted is
            'Fetches per day that its pages would get without a gap, at the price of the budget; null = '
            'more than any number.';
        comment on column recrawl_internal.held_back.frequency is 'Fetches per day that its pages were given.';
        comment on column recrawl_internal.held_back.gain is
            'What half the gap would bring of the objective, per unit of value, by a close bound.';
        comment on column recrawl_internal.held_back.as_of is 'When this was worked out.';

        create table recrawl_internal.event (
            event_id bigint generated always as identity primary key,
            at       timestamptz not null,
            kind     text        not null
                     constraint "kind must be one of"
                     check (kind in ('setting', 'host', 'pages', 'job', 'crawl')),
            subject  text        not null,
            says     text        not null,
            by       text
        );
        create index event_at on recrawl_internal.event (at);
        comment on table recrawl_internal.event is 'What people decided, and what happened to the crawl as a whole.';
        comment on column recrawl_internal.event.event_id is 'In order of writing.';
        comment on column recrawl_internal.event.at is 'When it happened.';
        comment on column recrawl_internal.event.kind is
            'What it is about: a setting, a host, pages, a job, or the crawl as a whole.';
        comment on column recrawl_internal.event.subject is 'Which setting, host, pattern or job.';
        comment on column recrawl_internal.event.says is 'What happened, in words.';
        comment on column recrawl_internal.event.by is 'The login that did it; null = the crawl itself.';

        -- Counters that nobody waits for.
        create sequence recrawl_internal.handed_out_count;
        create sequence recrawl_internal.expired_count;
        create sequence recrawl_internal.ask_count;
        -- Times, as the horizons are.
        create sequence recrawl_internal.worker_ticked;
        select setval('recrawl_internal.worker_ticked', (extract(epoch from clock_timestamp()) * 1000000)::bigint);
        create sequence recrawl_internal.events_paid_until;

        -- They say more than before.
        drop view if exists recrawl.queue_status;
        drop function if exists recrawl_internal.sample_queue(timestamptz);
        drop function if exists recrawl_internal.judged_results(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
            bigint, recrawl_internal.setting, recrawl_internal.host_terms);
        drop function if exists recrawl_internal.record_pass(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
            bigint, recrawl_internal.setting, recrawl_internal.host_terms);
    """)


def downgrade() -> None:
    op.execute("""
        drop view if exists recrawl.vitals, recrawl.vitals_by_hour, recrawl.crawl_status, recrawl.late_hosts,
            recrawl.held_back, recrawl.events, recrawl.queue_status;
        drop function if exists recrawl_internal.sample_queue(timestamptz, int);
        drop function if exists recrawl_internal.judged_results(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
            bigint, recrawl_internal.setting, recrawl_internal.host_terms);
        drop function if exists recrawl_internal.record_pass(
            timestamptz, recrawl_internal.result[], bigint[], bigint[], boolean,
            bigint, recrawl_internal.setting, recrawl_internal.host_terms);
        alter table recrawl_internal.setting drop column keep_vitals, drop column keep_history;
        drop table recrawl_internal.pulse, recrawl_internal.vital, recrawl_internal.vital_hour,
            recrawl_internal.vitals_state, recrawl_internal.late_host, recrawl_internal.held_back,
            recrawl_internal.event;
        drop sequence recrawl_internal.handed_out_count, recrawl_internal.expired_count, recrawl_internal.ask_count,
            recrawl_internal.worker_ticked, recrawl_internal.events_paid_until;
        update recrawl_internal.replayed set digest = '';
    """)
