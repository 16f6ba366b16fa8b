"""What pages cost that failed and are tried again is counted, and comes off the budget."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.execute("""
        drop view if exists recrawl.vitals, recrawl.vitals_by_hour;
        drop function if exists recrawl_internal.judged_results, recrawl_internal.letter_of;
        comment on column recrawl_internal.pulse.letters is
            'A letter a result: changed, unchanged, nothing told, first, missing, error, throttled, denied, each of '
            'them a capital where the attempt before had brought nothing; stale, repeated, x = refused.';
        alter table recrawl_internal.vital add retries bigint not null default 0;
        alter table recrawl_internal.vital_hour add retries bigint not null default 0;
        alter table recrawl_internal.allocation add retries float8;
        comment on column recrawl_internal.vital.retries is
            'Of all fetches, those of pages whose attempt before had brought nothing, whatever came of them.';
        comment on column recrawl_internal.vital_hour.retries is
            'Of all fetches, those of pages whose attempt before had brought nothing, whatever came of them.';
        comment on column recrawl_internal.allocation.retries is
            'Fetches per day that are left to pages that failed, as many as they took in the 24 hours before.';
    """)


def downgrade() -> None:
    op.execute("""
        drop view if exists recrawl.allocation_run, recrawl.vitals, recrawl.vitals_by_hour;
        drop function if exists recrawl_internal.judged_results, recrawl_internal.letter_of,
            recrawl_internal.retries_of_late;
        alter table recrawl_internal.vital drop retries;
        alter table recrawl_internal.vital_hour drop retries;
        alter table recrawl_internal.allocation drop retries;
        update recrawl_internal.replayed set digest = '';
    """)
