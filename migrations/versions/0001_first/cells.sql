-- Cells: sequences that are used as variables of one number, and two tables that belong to them.
--
-- A sequence is written in place and read without a snapshot. A row that every call updates would grow while an old
-- snapshot is open (pg_dump, analytics), and callers would wait for its lock. The price: a sequence is not
-- transactional. A rolled back transaction leaves its value, and of two values set at the same time one is lost.
--
-- The comment of a cell is `unit: meaning`. The unit is `time` (microseconds since 1970), `count` or `bits`. The view
-- internal_state shows them all. Sequences that are ids (host_id, page_id, lease_id, job_token) are no cells.

-- Horizons: see sql/upkeep/horizon.sql.
create sequence recrawl_internal.host_horizon;
comment on sequence recrawl_internal.host_horizon is
    'time: scans of the queue of revisits begin here and skip dead index entries. Upkeep writes it. If it is too low, '
    'next_pages is slow while an old snapshot is open. If it is too high, ready hosts wait until horizon_recheck.';
create sequence recrawl_internal.inbox_horizon;
comment on sequence recrawl_internal.inbox_horizon is
    'time: scans of the inbox begin here. Upkeep writes it. If it is too low, upkeep is slow while an old snapshot is '
    'open. If it is too high, entries wait until horizon_recheck.';
create sequence recrawl_internal.lease_horizon;
comment on sequence recrawl_internal.lease_horizon is
    'time: scans for leases that ended begin here. Upkeep writes it. If it is too low, upkeep is slow while an old '
    'snapshot is open. If it is too high, pages of these leases wait until horizon_recheck.';
do $$
begin
    for class in 0 .. 32 loop
        execute 'create sequence recrawl_internal.new_horizon_' || class;
        execute 'comment on sequence recrawl_internal.new_horizon_' || class || ' is '
                '''time: scans of class ' || class || ' of the queue of new pages begin here. Upkeep writes it. If it '
                'is too low, next_pages is slow while an old snapshot is open. If it is too high, its hosts wait '
                'until horizon_recheck.''';
    end loop;
end $$;
create sequence recrawl_internal.new_classes minvalue 0 start 0;
comment on sequence recrawl_internal.new_classes is
    'bits: bit n is 1 if some host is in class n of the queue of new pages. next_pages searches only these classes. '
    'The bit is set when a host enters the class, and upkeep computes all bits again. If a bit is missing, new pages '
    'of the class wait for the next upkeep.';
create sequence recrawl_internal.horizon_recheck;
comment on sequence recrawl_internal.horizon_recheck is
    'time: the first upkeep after this time computes all horizons again, from the beginning of the indexes. Upkeep '
    'writes it, and sets it to 1 if the clock was ahead. If it is too low, or more than five minutes ahead, the next '
    'upkeep computes them.';

-- Ticks: see sql/upkeep/tick.sql and sql/upkeep/clock.sql.
-- Unlogged: PostgreSQL sets it back to "never called" when a server was killed, or when a standby becomes the primary.
-- See sql/upkeep/lost_ids.sql.
create unlogged sequence recrawl_internal.next_tick;
comment on sequence recrawl_internal.next_tick is
    'time: after this time next_pages does upkeep itself. Upkeep writes it. If it is too low, or more than a minute '
    'ahead, the next call of next_pages does upkeep. If it has no value, because the server crashed or a standby '
    'became the primary, the server may have forgotten the last ids that it gave. So the next upkeep moves the '
    'sequences of ids forward.';
select setval('recrawl_internal.next_tick', 1);
create sequence recrawl_internal.latest_tick;
comment on sequence recrawl_internal.latest_tick is
    'time: the latest time of any upkeep. Upkeep writes it, and sets it back after a repair. Do not set it by hand: '
    'if it is more than a minute ahead, upkeep assumes that the clock was ahead, and changes due times of pages and '
    'hosts.';
create sequence recrawl_internal.worker_ticked;
comment on sequence recrawl_internal.worker_ticked is
    'time: the last upkeep by a worker. The function tick() writes it. If it is too low, recrawl says that the crawl '
    'has no worker. If it is more than a day too low, the view vitals does not count reports.';
select setval('recrawl_internal.worker_ticked', (extract(epoch from clock_timestamp()) * 1000000)::bigint);

-- Pages handed out, compared with the fetches that the budget allows from 1970 to now: see sql/hand_out/pace.sql.
create sequence recrawl_internal.fetch_count minvalue 0 start 0;
comment on sequence recrawl_internal.fetch_count is
    'count: pages handed out. next_pages and take_slot count it. The budget is used up if the value is budget × days '
    'since 1970. So the value is adjusted when the budget changes. A wrong value is corrected: then it is at most an '
    'hour''s fetches too high, or a second''s fetches too low.';
create sequence recrawl_internal.new_count minvalue 0 start 0;
comment on sequence recrawl_internal.new_count is
    'count: new pages handed out. next_pages counts it. The part of the budget for new pages is used up if the value '
    'is budget × discovery × days since 1970. So the value is adjusted when the budget changes. A wrong value is '
    'corrected: then it is at most an hour''s fetches too high, or a second''s fetches too low.';

-- Counters. The job vitals and allocation read the growth since they last looked. A wrong value makes one such
-- figure wrong.
create sequence recrawl_internal.handed_out_count;
comment on sequence recrawl_internal.handed_out_count is
    'count: pages handed out. next_pages counts it. The jobs vitals and allocate and a measured budget subtract the '
    'value that they read before. If the value jumps, one of these differences is wrong.';
create sequence recrawl_internal.ask_count;
comment on sequence recrawl_internal.ask_count is
    'count: calls of next_pages while the crawl was not paused. next_pages counts it. The job vitals and a measured '
    'budget subtract the value that they read before. If the value jumps, one of these differences is wrong.';
create sequence recrawl_internal.short_ask_count minvalue 0 start 0;
comment on sequence recrawl_internal.short_ask_count is
    'count: calls of next_pages that got fewer pages than they asked for, while the budget is measured. next_pages '
    'counts it. If the value jumps, a measured budget is too high or too low for a quarter of an hour.';

-- Limits of crawlers: see sql/upkeep/logins.sql and sql/hand_out/take_slot.sql.
create sequence recrawl_internal.leased_recount minvalue 0 start 0;
comment on sequence recrawl_internal.leased_recount is
    'count: when handed_out_count reaches this value, upkeep counts the leased pages of each login again. Upkeep '
    'writes it. If it is too high, a login can exceed max_leased_per_login until then.';
create sequence recrawl_internal.new_host_count minvalue 0 start 0;
comment on sequence recrawl_internal.new_host_count is
    'count: ten million times the minutes since 1970, plus the unknown hosts of this minute. So one number holds the '
    'minute and its count. take_slot and set_robots write it when they are given an unknown host. If it is too high, '
    'they accept no more unknown hosts in this minute.';

create sequence recrawl_internal.steered;
comment on sequence recrawl_internal.steered is
    'time: when an operator last changed something that allocation depends on. Functions such as set_setting write it. '
    'If it is too high, there is one allocation more than needed. If it is too low, a change waits for the next '
    'regular allocation.';

create table recrawl_internal.budget_step (
    at         timestamptz not null,
    calls      bigint      not null,
    short      bigint      not null,
    handed_out bigint      not null
);
create index budget_step_at on recrawl_internal.budget_step (at);
alter table recrawl_internal.budget_step replica identity full;
comment on table recrawl_internal.budget_step is
    'Counters for a measured budget. A row is written every five minutes in which crawlers asked for pages, and kept '
    'for one day.';
comment on column recrawl_internal.budget_step.at is 'The time when the counters were read.';
comment on column recrawl_internal.budget_step.calls is 'The value of ask_count.';
comment on column recrawl_internal.budget_step.short is 'The value of short_ask_count.';
comment on column recrawl_internal.budget_step.handed_out is 'The value of handed_out_count.';

create table recrawl_internal.pulling_in (
    only_row    boolean     primary key default true check (only_row),
    wrong_until timestamptz,
    host_id     bigint      not null default 0,
    page_id     bigint      not null default 0,
    passed_over int         not null default 0,
    hosts       int         not null default 0,
    leases      int         not null default 0,
    pages       int         not null default 0
);
insert into recrawl_internal.pulling_in default values;
comment on table recrawl_internal.pulling_in is
    'The progress of a repair. If the clock of the server was ahead, upkeep moves times in the future to the present: '
    'see sql/upkeep/clock.sql. The table has one row.';
comment on column recrawl_internal.pulling_in.only_row is 'Always true, so that the table has only one row.';
comment on column recrawl_internal.pulling_in.wrong_until is
    'The value of latest_tick when the repair began; null = no repair is running.';
comment on column recrawl_internal.pulling_in.host_id is
    'The repair looks at all hosts in the order of their ids. This is the last one so far.';
comment on column recrawl_internal.pulling_in.page_id is
    'The repair looks at all pages in the order of their ids. This is the last one so far.';
comment on column recrawl_internal.pulling_in.passed_over is
    'Hosts and pages that the repair skipped because they were locked. If there are any, it looks at all hosts and '
    'pages once more.';
comment on column recrawl_internal.pulling_in.hosts is 'Hosts that the repair has changed so far.';
comment on column recrawl_internal.pulling_in.leases is 'Leases that the repair has ended so far.';
comment on column recrawl_internal.pulling_in.pages is 'Pages that the repair has changed so far.';
