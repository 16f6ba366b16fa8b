-- Logs: rows are only appended, read from end to end and deleted. Events are kept for people.

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
comment on table recrawl_internal.event is 'Decisions of people, and events of the whole crawl.';
comment on column recrawl_internal.event.event_id is 'Ids in the order of writing.';
comment on column recrawl_internal.event.at is 'When it happened.';
comment on column recrawl_internal.event.kind is
    'The kind of its subject: a setting, a host, pages, a job, or the whole crawl.';
comment on column recrawl_internal.event.subject is 'The name of the setting, host, pattern or job.';
comment on column recrawl_internal.event.says is 'The event in words.';
comment on column recrawl_internal.event.by is 'The login that did it; null = the crawl itself.';

-- fetch_log and pulse have no index. Each has four parts that take turns, see sql/upkeep/logs.sql: the oldest part is
-- truncated, which leaves nothing to vacuum.
create table recrawl_internal.fetch_log (
    part    int         not null,
    page_id bigint      not null,
    at      timestamptz not null,
    days    real        not null,
    changed boolean     not null
) partition by list (part);
comment on table recrawl_internal.fetch_log is
    'Observations: fetches that said whether the page had changed. Kept if the setting keep_log is given.';
comment on column recrawl_internal.fetch_log.part is 'The part of the log, see log_part().';
comment on column recrawl_internal.fetch_log.page_id is 'The page.';
comment on column recrawl_internal.fetch_log.at is 'When it was fetched.';
comment on column recrawl_internal.fetch_log.days is 'Days since the fetch before.';
comment on column recrawl_internal.fetch_log.changed is 'True if it had changed.';

create table recrawl_internal.pulse (
    part    int         not null,
    at      timestamptz not null,
    letters text        not null,
    late    real[],
    lost    float8,
    expired int,
    missed  int
) partition by list (part);
comment on table recrawl_internal.pulse is
    'One row per call of report, per tick that ended leases, and per call of release that gave back pages whose slot '
    'had passed. Kept for half an hour. The job vitals adds them up.';
comment on column recrawl_internal.pulse.part is 'The part of the log, see log_part().';
comment on column recrawl_internal.pulse.at is 'When the call or tick was.';
comment on column recrawl_internal.pulse.letters is
    'One letter per result. c changed, u unchanged, n nothing said whether it changed, f first, m missing, e error, '
    't throttled, d denied; in capitals if the attempt before had failed. s stale, r repeated, x refused.';
comment on column recrawl_internal.pulse.late is 'How late each revisit was, in seconds.';
comment on column recrawl_internal.pulse.lost is
    'Whole periods that passed before these revisits; null = none.';
comment on column recrawl_internal.pulse.expired is
    'Pages whose lease ended before a report; null = it is the row of a report.';
comment on column recrawl_internal.pulse.missed is
    'Pages that were released after their slot had passed without a request; null = it is the row of a report.';

-- (Written without format(): a script made by `alembic upgrade --sql` would have its percent signs twice.)
do $$
declare
    log     text;
    quarter text;
    col     record;
begin
    foreach log in array '{fetch_log,pulse}'::text[] loop
        execute 'alter table recrawl_internal.' || log || ' replica identity full';
        for part in 0 .. 3 loop
            quarter := 'recrawl_internal.' || log || '_' || part;
            execute 'create table ' || quarter || ' partition of recrawl_internal.' || log
                    || ' for values in (' || part || ')';
            execute 'alter table ' || quarter || ' replica identity full';
            execute 'comment on table ' || quarter || ' is ''A quarter of ' || log || '.''';
            for col in
                select a.attname as name, col_description(a.attrelid, a.attnum) as meaning
                from pg_attribute a where a.attrelid = ('recrawl_internal.' || log)::regclass and a.attnum > 0
            loop
                execute 'comment on column ' || quarter || '.' || col.name || ' is ' || quote_literal(col.meaning);
            end loop;
        end loop;
    end loop;
end $$;
