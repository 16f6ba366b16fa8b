"""The inbox has two columns less, and nine comments are corrected. Locks: inbox, host, lease, vital and vital_hour.

An entry of the inbox says where its page was. Where the page belongs stands only in its row of page.
"""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # The replay of sql/ makes the function again.
    op.execute("""
        drop function if exists recrawl_internal.on_their_way();
        alter table recrawl_internal.inbox drop column new_due, drop column new_rank;
        comment on table recrawl_internal.inbox is
            'Pages that wait to be moved in queue and new_page to where their rows in page say that they belong. An '
            'entry is written without a lock on the host. Upkeep applies the entries in order, while it holds the '
            'locks of the hosts.';
        comment on column recrawl_internal.inbox.old_due is
            'The place of the page in queue before the change; null = it was not in queue.';
        comment on column recrawl_internal.inbox.old_rank is
            'The place of the page in new_page before the change; null = it was not in new_page.';

        comment on column recrawl_internal.host.ready_at is
            'The place of the host in the queue of revisits: the time when next_pages should look at the host for a '
            'due page. It is the latest of five times: next slot, first due page, end of the block, busy_until, time '
            'of writing. If ready_at has already passed and a new page gets the slot, ready_at stays as it is, unless '
            'the next slot is far away.';
        comment on column recrawl_internal.host.pages is
            'Pages of the host that entered the queue and have not left it. Pages that are gone, moved, excluded or '
            'kept_out do not count.';
        comment on column recrawl_internal.lease.round is
            'A number that grows within the call of next_pages. Numbers may be missing. Most calls have one round.';
        comment on column recrawl_internal.lease.new_pages is
            'The number of its pages that were new, when they were handed out.';
        comment on column recrawl_internal.lease.busy_hosts is
            'The hosts of its pages that are one_at_a_time, when they were handed out.';
        comment on column recrawl_internal.vital.empty_calls is 'Calls of next_pages that found no host.';
        comment on column recrawl_internal.vital_hour.empty_calls is 'Calls of next_pages that found no host.';
        comment on column recrawl_internal.vital.pages is
            'Pages that were added and are not gone, moved, excluded or kept_out, at the last count.';
        comment on column recrawl_internal.vital_hour.pages is
            'Pages that were added and are not gone, moved, excluded or kept_out, at the last count.';
    """)


def downgrade() -> None:
    op.execute("""
        alter table recrawl_internal.inbox add column new_due timestamptz, add column new_rank real;
        update recrawl_internal.inbox i set
            new_due = p.due_at, new_rank = case when p.due_at is null then -p.value end
        from recrawl_internal.page p
        where p.page_id = i.page_id and p.state = 'live';
        comment on table recrawl_internal.inbox is
            'Changes that wait to be made in queue and new_page. An entry is written without a lock on the host. '
            'Upkeep makes the changes in order, while it holds the locks of the hosts.';
        comment on column recrawl_internal.inbox.old_due is
            'The due time of the page in queue; null = it is not in queue.';
        comment on column recrawl_internal.inbox.new_due is
            'The new due time of the page in queue; null = the page leaves queue.';
        comment on column recrawl_internal.inbox.old_rank is
            'The rank of the page in new_page; null = it is not in new_page.';
        comment on column recrawl_internal.inbox.new_rank is
            'The new rank of the page in new_page; null = the page leaves new_page.';

        comment on column recrawl_internal.host.ready_at is
            'The place of the host in the queue of revisits: the time when next_pages should look at the host for a '
            'due page. It is the latest of five times: next slot, first due page, end of the block, busy_until, time '
            'of writing. If ready_at has already passed and a new page gets the slot, ready_at stays as it is.';
        comment on column recrawl_internal.host.pages is
            'Pages of the host that were taken into the queue and not kept_out.';
        comment on column recrawl_internal.lease.round is
            'The number of the round within the call. Most calls have one round.';
        comment on column recrawl_internal.lease.new_pages is 'The number of its pages that were new.';
        comment on column recrawl_internal.lease.busy_hosts is 'The hosts of these pages that are one_at_a_time.';
        comment on column recrawl_internal.vital.empty_calls is 'Calls of next_pages that returned no page.';
        comment on column recrawl_internal.vital_hour.empty_calls is 'Calls of next_pages that returned no page.';
        comment on column recrawl_internal.vital.pages is 'Pages that were added and not kept_out, at the last count.';
        comment on column recrawl_internal.vital_hour.pages is
            'Pages that were added and not kept_out, at the last count.';
    """)
