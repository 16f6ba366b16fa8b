"""Hosts that share a gap: who adds a page may say as which host its own is asked."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute("""
        drop function if exists recrawl.add_pages, recrawl_internal.add_pages_at,
            recrawl_internal.intern_pages, recrawl_internal.intern_hosts;
        alter type recrawl_internal.intern_item add attribute asked_as text;
        comment on table recrawl_internal.host_name is
            'By which names hosts are known, and what they may take in, apart from the hot rows so that no pop updates '
            'its index: each by its own, and by those of hosts that are asked as it.';
        comment on column recrawl_internal.host_name.host_id is 'The host, or the one that it is asked as.';
        comment on column recrawl_internal.host_name.max_pages is
            'Takes in no more pages than this; null = the setting max_pages. The same for all names of a host.';
        comment on column recrawl_internal.host.name is
            'The name in host_name that is its own, here so that a pop need not look it up.';
    """)


def downgrade() -> None:
    op.execute("""
        drop function if exists recrawl.add_pages, recrawl_internal.add_pages_at,
            recrawl_internal.intern_pages, recrawl_internal.intern_hosts;
        alter type recrawl_internal.intern_item drop attribute asked_as;
        comment on table recrawl_internal.host_name is
            'Identity of hosts and what they may take in, apart from the hot rows so that no pop updates its index.';
        comment on column recrawl_internal.host_name.host_id is 'The host.';
        comment on column recrawl_internal.host_name.max_pages is
            'Takes in no more pages than this; null = the setting max_pages.';
        comment on column recrawl_internal.host.name is
            'Copy of host_name.name, here so that a pop need not look it up.';
        update recrawl_internal.replayed set digest = '';
    """)
