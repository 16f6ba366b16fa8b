"""Hosts that share a gap: who adds a page may say as which host its own is asked."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute("""
        drop view if exists recrawl.host_status;
        drop function if exists recrawl.add_pages, recrawl_internal.add_pages_at,
            recrawl_internal.intern_pages, recrawl_internal.intern_hosts;
        alter type recrawl_internal.intern_item add attribute asked_as text;

        -- Several names may lead to a host now, so what it may take in stands with the host itself.
        alter table recrawl_internal.host add column max_pages int;
        update recrawl_internal.host h set max_pages = n.max_pages
        from recrawl_internal.host_name n
        where n.host_id = h.host_id and n.max_pages is not null;
        alter table recrawl_internal.host_name drop column max_pages;
        comment on column recrawl_internal.host.max_pages is
            'Takes in no more pages than this; null = the setting max_pages.';
        comment on column recrawl_internal.host.name is
            'The name in host_name that is its own, here so that a pop need not look it up.';
        comment on table recrawl_internal.host_name is
            'By which names hosts are known: each by its own, and by those of hosts that are asked as it.';
        comment on column recrawl_internal.host_name.host_id is 'The host, or the one that it is asked as.';
    """)


def downgrade() -> None:
    op.execute("""
        drop view if exists recrawl.host_status, recrawl.late_hosts;
        drop function if exists recrawl.add_pages, recrawl_internal.add_pages_at,
            recrawl_internal.intern_pages, recrawl_internal.intern_hosts;
        alter type recrawl_internal.intern_item drop attribute asked_as;
        alter table recrawl_internal.host_name add column max_pages int;
        update recrawl_internal.host_name n set max_pages = h.max_pages
        from recrawl_internal.host h
        where h.name = n.name and h.max_pages is not null;
        alter table recrawl_internal.host drop column max_pages;
        comment on column recrawl_internal.host_name.max_pages is
            'Takes in no more pages than this; null = the setting max_pages.';
        comment on column recrawl_internal.host.name is
            'Copy of host_name.name, here so that a pop need not look it up.';
        comment on table recrawl_internal.host_name is
            'Identity of hosts and what they may take in, apart from the hot rows so that no pop updates its index.';
        comment on column recrawl_internal.host_name.host_id is 'The host.';
        update recrawl_internal.replayed set digest = '';
    """)
