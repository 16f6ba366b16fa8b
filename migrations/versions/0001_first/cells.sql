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
    'time: scans of the queue of revisits begin here, above dead index entries. Written by upkeep. Too low: '
    'next_pages is slow while an old snapshot is open. Too high: ready hosts wait until horizon_recheck.';
create sequence recrawl_internal.inbox_horizon;
comment on sequence recrawl_internal.inbox_horizon is
    'time: scans of the inbox begin here. Written by upkeep. Too low: upkeep is slow while an old snapshot is open. '
    'Too high: entries wait until horizon_recheck.';
create sequence recrawl_internal.lease_horizon;
comment on sequence recrawl_internal.lease_horizon is
    'time: scans for leases that ended begin here. Written by upkeep. Too low: upkeep is slow while an old snapshot '
    'is open. Too high: pages of these leases wait until horizon_recheck.';
do $$
begin
    for class in 0 .. 32 loop
        execute 'create sequence recrawl_internal.new_horizon_' || class;
        execute 'comment on sequence recrawl_internal.new_horizon_' || class || ' is '
                '''time: scans of class ' || class || ' of the queue of new pages begin here. Written by upkeep. Too '
                'low: next_pages is slow while an old snapshot is open. Too high: its hosts wait until '
                'horizon_recheck.''';
    end loop;
end $$;
create sequence recrawl_internal.new_classes minvalue 0 start 0;
comment on sequence recrawl_internal.new_classes is
    'bits: bit n is 1 if some host is in class n of the queue of new pages. Set when a host enters a class, and '
    'computed again by upkeep. A missing bit: new pages of the class wait for the next upkeep. A bit too many: '
    'next_pages searches an empty class.';
create sequence recrawl_internal.horizon_recheck;
comment on sequence recrawl_internal.horizon_recheck is
    'time: the first upkeep after this time computes all horizons again, from the beginning of the indexes. Written '
    'by upkeep. Set to 1 if the clock was ahead. Too low, or more than five minutes ahead: the next upkeep computes '
    'them.';

-- Ticks: see sql/upkeep/tick.sql and sql/upkeep/clock.sql.
-- Unlogged: PostgreSQL sets it back to "never called" when a server was killed, or when a standby becomes the primary.
-- See sql/upkeep/lost_ids.sql.
create unlogged sequence recrawl_internal.next_tick;
comment on sequence recrawl_internal.next_tick is
    'time: after this time next_pages does upkeep itself. Written by upkeep. Too low, or more than a minute ahead: '
    'the next call of next_pages does upkeep. Too high by less than a minute: upkeep is late by this time. Never '
    'called: the next upkeep skips ids that may have been lost.';
select setval('recrawl_internal.next_tick', 1);
create sequence recrawl_internal.latest_tick;
comment on sequence recrawl_internal.latest_tick is
    'time: the latest time of any upkeep. Written by upkeep, and set back after a repair. More than a minute ahead '
    'means that the clock was ahead, so upkeep rewrites due times of pages and hosts: do not set it by hand.';
create sequence recrawl_internal.worker_ticked;
comment on sequence recrawl_internal.worker_ticked is
    'time: the last upkeep by a worker. Written by the function tick(). Too low: recrawl says that the crawl has no '
    'worker, and after a day reports write no row into pulse.';
select setval('recrawl_internal.worker_ticked', (extract(epoch from clock_timestamp()) * 1000000)::bigint);

-- Pages handed out, compared with the fetches that the budget allows from 1970 to now: see sql/hand_out/pace.sql.
create sequence recrawl_internal.fetch_count minvalue 0 start 0;
comment on sequence recrawl_internal.fetch_count is
    'count: pages handed out, to be compared with budget × days since 1970. Counted by next_pages and take_slot, '
    'adjusted when the budget changes. A wrong value is corrected to at most an hour''s budget ahead, or a second''s '
    'budget behind.';
create sequence recrawl_internal.new_count minvalue 0 start 0;
comment on sequence recrawl_internal.new_count is
    'count: new pages handed out, to be compared with budget × discovery × days since 1970. Counted by next_pages, '
    'adjusted when the budget changes. A wrong value is corrected in the same way as fetch_count.';

-- Counters. The job vitals and allocation read the growth since they last looked. A wrong value makes one such
-- figure wrong.
create sequence recrawl_internal.handed_out_count;
comment on sequence recrawl_internal.handed_out_count is
    'count: pages handed out. Counted by next_pages. The jobs vitals and allocate and a measured budget use the '
    'difference of two values: a jump makes one number of each wrong.';
create sequence recrawl_internal.ask_count;
comment on sequence recrawl_internal.ask_count is
    'count: calls of next_pages while the crawl was not paused. Counted by next_pages. The job vitals and a measured '
    'budget use the difference of two values: a jump makes one number of each wrong.';
create sequence recrawl_internal.short_ask_count minvalue 0 start 0;
comment on sequence recrawl_internal.short_ask_count is
    'count: calls of next_pages that got fewer pages than they asked for, while the budget is measured. Counted by '
    'next_pages. A jump raises or lowers a measured budget for a quarter of an hour.';

-- Limits of crawlers: see sql/upkeep/logins.sql and sql/hand_out/take_slot.sql.
create sequence recrawl_internal.leased_recount minvalue 0 start 0;
comment on sequence recrawl_internal.leased_recount is
    'count: when handed_out_count reaches this value, upkeep counts the leased pages of each login again. Written by '
    'upkeep. Too low: one count too many. Too high: a login can exceed max_leased until then.';
create sequence recrawl_internal.new_host_count minvalue 0 start 0;
comment on sequence recrawl_internal.new_host_count is
    'count: hosts that take_slot and set_robots made known in this minute, plus ten million times the minutes since '
    '1970. Written by these two functions. Too high: they make no more hosts known in this minute.';

create sequence recrawl_internal.steered;
comment on sequence recrawl_internal.steered is
    'time: when a person last changed something that allocation depends on. Written by functions such as '
    'set_setting. Too high: one allocation too many. Too low: a change waits for the next regular allocation.';

create table recrawl_internal.budget_step (
    at         timestamptz not null,
    asks       bigint      not null,
    short      bigint      not null,
    handed_out bigint      not null
);
create index budget_step_at on recrawl_internal.budget_step (at);
alter table recrawl_internal.budget_step replica identity full;
comment on table recrawl_internal.budget_step is
    'Counters for a measured budget. A row is written every five minutes in which crawlers asked for pages, and kept '
    'for one day.';
comment on column recrawl_internal.budget_step.at is 'The time when the counters were read.';
comment on column recrawl_internal.budget_step.asks is 'The value of ask_count.';
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
comment on column recrawl_internal.pulling_in.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.pulling_in.wrong_until is
    'The value of latest_tick when the repair began; null = no repair is running.';
comment on column recrawl_internal.pulling_in.host_id is 'In this round the repair has looked at hosts up to this one.';
comment on column recrawl_internal.pulling_in.page_id is 'In this round the repair has looked at pages up to this one.';
comment on column recrawl_internal.pulling_in.passed_over is
    'Hosts and pages that the repair skipped in this round because they were locked. If there are any, another round '
    'follows.';
comment on column recrawl_internal.pulling_in.hosts is 'Hosts that the repair has changed so far.';
comment on column recrawl_internal.pulling_in.leases is 'Leases that the repair has ended so far.';
comment on column recrawl_internal.pulling_in.pages is 'Pages that the repair has changed so far.';
