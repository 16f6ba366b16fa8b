"""When a worker runs which job."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting
            add column rates_every interval default '6 hours'
            constraint "rates_every must lie between 10 seconds and 10 years"
            check (rates_every between '10 seconds' and '87660 hours'),
            add column opic_every interval default '6 hours'
            constraint "opic_every must lie between 10 seconds and 10 years"
            check (opic_every between '10 seconds' and '87660 hours'),
            add column allocate_every interval default '1 hour'
            constraint "allocate_every must lie between 10 seconds and 10 years"
            check (allocate_every between '10 seconds' and '87660 hours'),
            add column memory real not null default 500
            constraint "memory must lie between 0 and 1e6 megabytes"
            check (memory between 0 and 1e6);
        comment on column recrawl_internal.setting.rates_every is
            'interval: a worker learns so often how often pages change on each host; none = never.';
        comment on column recrawl_internal.setting.opic_every is
            'interval: a worker scores the link graph so often, and also when 5 % of it is news; none = never.';
        comment on column recrawl_internal.setting.allocate_every is
            'interval: a worker divides the budget so often, and also when what it depends on moved by 5 %; '
            'none = never.';
        comment on column recrawl_internal.setting.memory is
            'megabytes: that a worker keeps of the graph between two runs of opic, so as to read only the news; '
            'a larger graph is read anew each time.';

        alter table recrawl_internal.job add column pid int;
        comment on column recrawl_internal.job.pid is
            'The server process of its connection: when that has ended, so has the run.';
        create index job_by_name on recrawl_internal.job (job, token);

        alter table recrawl_internal.allocation add column worth float8;
        comment on column recrawl_internal.allocation.worth is
            'The value of all pages that took part, together. Null for runs that did not note it.';

        -- Microseconds since 1970, as the horizons are.
        create sequence recrawl_internal.steered;
    """)


def downgrade() -> None:
    op.execute("""
        drop sequence recrawl_internal.steered;
        drop view if exists recrawl.job_schedule;
        drop function if exists recrawl_internal.run_is_dead(recrawl_internal.job) cascade;
        drop index recrawl_internal.job_by_name;
        alter table recrawl_internal.allocation drop column worth;
        alter table recrawl_internal.job drop column pid;
        alter table recrawl_internal.setting
            drop column memory, drop column allocate_every, drop column opic_every, drop column rates_every;
        update recrawl_internal.replayed set digest = '';
    """)
