"""An entry of the inbox says where its page was, not where it belongs. Locks: inbox, for a moment."""

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
    """)
