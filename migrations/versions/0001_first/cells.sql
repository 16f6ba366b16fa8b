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
    'time: scans of the line of revisits begin here, above dead index entries. Written by ticks. Too low: pops are '
    'slow while an old snapshot is open. Too high: ready hosts wait until horizon_recheck.';
create sequence recrawl_internal.inbox_horizon;
comment on sequence recrawl_internal.inbox_horizon is
    'time: scans of the inbox begin here. Written by ticks. Too low: ticks are slow while an old snapshot is open. Too '
    'high: entries wait until horizon_recheck.';
create sequence recrawl_internal.lease_horizon;
comment on sequence recrawl_internal.lease_horizon is
    'time: scans for leases that ended begin here. Written by ticks. Too low: ticks are slow while an old snapshot is '
    'open. Too high: pages of these leases wait until horizon_recheck.';
do $$
begin
    for class in 0 .. 32 loop
        execute 'create sequence recrawl_internal.new_horizon_' || class;
        execute 'comment on sequence recrawl_internal.new_horizon_' || class || ' is '
                '''time: scans of the line of new pages of class ' || class || ' begin here. Written by ticks. Too '
                'low: pops are slow while an old snapshot is open. Too high: its hosts wait until horizon_recheck.''';
    end loop;
end $$;
create sequence recrawl_internal.new_classes minvalue 0 start 0;
comment on sequence recrawl_internal.new_classes is
    'bits: bit n is 1 if a host stands in class n of the line of new pages. Set where a host enters a class, computed '
    'anew by ticks. A missing bit: new pages of the class wait for the next tick. A bit too many: pops look in vain.';
create sequence recrawl_internal.horizon_recheck;
comment on sequence recrawl_internal.horizon_recheck is
    'time: the first tick after this computes all horizons from the beginning of the indexes. Written by ticks, and '
    'set to 1 when the clock was ahead. Too low, or more than five minutes ahead: the next tick does it.';

-- Ticks: see sql/upkeep/tick.sql and sql/upkeep/clock.sql.
-- Unlogged: PostgreSQL sets it back to "never called" when a server was killed, or when a standby becomes the primary.
-- See sql/upkeep/lost_ids.sql.
create unlogged sequence recrawl_internal.next_tick;
comment on sequence recrawl_internal.next_tick is
    'time: from then on a pop does a tick itself. Written by ticks. Too low, or more than a minute ahead: the next pop '
    'ticks. Too high by less: that much later. Never called: the next tick skips ids that may have been lost.';
select setval('recrawl_internal.next_tick', 1);
create sequence recrawl_internal.latest_tick;
comment on sequence recrawl_internal.latest_tick is
    'time: the latest time of any tick. Written by ticks, and set back after a repair. More than a minute ahead means '
    'that the clock was ahead, so ticks rewrite the due times of pages and hosts: do not set it by hand.';
create sequence recrawl_internal.worker_ticked;
comment on sequence recrawl_internal.worker_ticked is
    'time: the last tick of a worker. Written by the function tick(). Too low: the crawl is said to have no worker, '
    'and after a day reports write no pulse.';
select setval('recrawl_internal.worker_ticked', (extract(epoch from clock_timestamp()) * 1000000)::bigint);

-- Pages handed out, compared with the fetches that the budget allows from 1970 to now: see sql/hand_out/pace.sql.
create sequence recrawl_internal.fetch_count minvalue 0 start 0;
comment on sequence recrawl_internal.fetch_count is
    'count: pages handed out, compared with budget × days since 1970. Counted by pops and take_slot, adjusted when '
    'the budget changes. A wrong value is corrected to at most an hour''s budget ahead, or a second''s behind.';
create sequence recrawl_internal.new_count minvalue 0 start 0;
comment on sequence recrawl_internal.new_count is
    'count: new pages handed out, compared with budget × discovery × days since 1970. Counted by pops, adjusted when '
    'the budget changes. A wrong value is corrected as that of fetch_count is.';

-- Counters. The job vitals and allocation read the growth since they last looked. A wrong value makes one such
-- figure wrong.
create sequence recrawl_internal.handed_out_count;
comment on sequence recrawl_internal.handed_out_count is
    'count: pages handed out. Counted by pops. Vitals, allocation and a measured budget read its growth: a jump makes '
    'one figure of each wrong.';
create sequence recrawl_internal.ask_count;
comment on sequence recrawl_internal.ask_count is
    'count: calls of next_pages while the crawl was not paused. Counted by pops. Vitals and a measured budget read its '
    'growth: a jump makes one figure of each wrong.';
create sequence recrawl_internal.short_ask_count minvalue 0 start 0;
comment on sequence recrawl_internal.short_ask_count is
    'count: calls of next_pages that got fewer pages than they asked for, while the budget is measured. Counted by '
    'pops. A jump raises or lowers a measured budget for a quarter of an hour.';

create sequence recrawl_internal.steered;
comment on sequence recrawl_internal.steered is
    'time: when a person last changed the input of an allocation. Written by the verbs that do. Too high: one '
    'allocation too many. Too low: a change waits for the next regular allocation.';

create table recrawl_internal.budget_step (
    at         timestamptz not null,
    asks       bigint      not null,
    short      bigint      not null,
    handed_out bigint      not null
);
create index budget_step_at on recrawl_internal.budget_step (at);
alter table recrawl_internal.budget_step replica identity full;
comment on table recrawl_internal.budget_step is
    'If the budget is measured: the counters every five minutes of the last day in which crawlers asked for pages.';
comment on column recrawl_internal.budget_step.at is 'When they were read.';
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
    'The progress of the repair after the clock was ahead, which pulls in times that lie in the future: see '
    'sql/upkeep/clock.sql.';
comment on column recrawl_internal.pulling_in.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.pulling_in.wrong_until is
    'The value of latest_tick when the repair began; null = there is no repair.';
comment on column recrawl_internal.pulling_in.host_id is 'Hosts up to this one were looked at in this round.';
comment on column recrawl_internal.pulling_in.page_id is 'Pages up to this one were looked at in this round.';
comment on column recrawl_internal.pulling_in.passed_over is
    'Hosts and pages that were locked in this round. If there are any, another round follows.';
comment on column recrawl_internal.pulling_in.hosts is 'Hosts pulled in so far.';
comment on column recrawl_internal.pulling_in.leases is 'Leases ended so far.';
comment on column recrawl_internal.pulling_in.pages is 'Pages pulled in so far.';
