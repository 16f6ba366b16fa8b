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
comment on table recrawl_internal.event is 'Decisions of people, and events of the whole crawl, such as a pause.';
comment on column recrawl_internal.event.event_id is 'Ids in the order in which events were written.';
comment on column recrawl_internal.event.at is 'The time of the event.';
comment on column recrawl_internal.event.kind is
    'The kind of the subject: setting, host, pages, job, or crawl (the whole crawl).';
comment on column recrawl_internal.event.subject is 'The name of the setting, host, pattern or job.';
comment on column recrawl_internal.event.says is 'The event as a sentence.';
comment on column recrawl_internal.event.by is 'The login that caused it; null = the crawl itself.';

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
    'Fetches that showed whether the page had changed. The log is kept only if the setting keep_log has a value.';
comment on column recrawl_internal.fetch_log.part is
    'The partition of the row, 0 to 3. log_part() computes it from the time.';
comment on column recrawl_internal.fetch_log.page_id is 'The page.';
comment on column recrawl_internal.fetch_log.at is 'The time of the fetch.';
comment on column recrawl_internal.fetch_log.days is 'The number of days since the fetch before.';
comment on column recrawl_internal.fetch_log.changed is 'True if the page had changed.';

create table recrawl_internal.pulse (
    part    int         not null,
    at      timestamptz not null,
    letters text        not null,
    late    real[],
    skipped float8,
    expired int,
    missed  int
) partition by list (part);
comment on table recrawl_internal.pulse is
    'Counts of reports. One row for each call of report, for each upkeep that ended leases, and for each call of '
    'release after a slot had passed. Rows are kept for half an hour. The job vitals adds them up.';
comment on column recrawl_internal.pulse.part is
    'The partition of the row, 0 to 3. log_part() computes it from the time.';
comment on column recrawl_internal.pulse.at is 'The time of the call.';
comment on column recrawl_internal.pulse.letters is
    'One letter for each result: c = changed, u = unchanged, n = nothing showed whether it changed, f = first fetch, '
    'm = missing, e = error, t = throttled, d = denied, s = stale, r = repeated, x = refused. A capital letter means '
    'that the last attempt of the page had failed.';
comment on column recrawl_internal.pulse.late is 'The delay of each revisit in seconds.';
comment on column recrawl_internal.pulse.skipped is
    'The number of whole intervals that passed before these revisits; null = 0.';
comment on column recrawl_internal.pulse.expired is
    'Pages whose lease ended before a report; null = the row is of a report.';
comment on column recrawl_internal.pulse.missed is
    'Pages that were released without a request, after their slot had passed; null = the row is of a report.';

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
