"""Crawls that are large enough to show functions that read too much. They are loaded without the public functions."""

from collections.abc import Callable
from typing import Any, LiteralString

import psycopg

HOT_TABLES = ("page", "queue", "host", "host_name", "new_page", "inbox", "lease", "link")
DUE: LiteralString = "now() - interval '1 hour' * random()"
LATER: LiteralString = "now() + interval '1 hour' + interval '1 day' * random()"
FIVE_PERCENT: LiteralString = "now() + interval '1 day' * (random() - 0.05)"

Connection = psycopg.Connection[Any]
Loaded = Callable[..., Connection]


def load(connection: Connection, pages: int = 50_000, hosts: int = 1_000, due: LiteralString = DUE) -> None:
    """Pages that were fetched before, in an order that has nothing to do with their hosts: each time the same."""
    connection.execute("select setseed(0.5)")
    for table in (*HOT_TABLES, "setting"):
        connection.execute(f"alter table {table} set (autovacuum_enabled = false)")
    connection.execute("select recrawl.set_setting('window_share', '0')")  # ten slots within nine gaps
    arguments = {"pages": pages, "hosts": hosts}
    connection.execute(
        f"""
        insert into page (page_id, key, host_id, due_at, fetched_at, last_status, successes, url, content_hash, etag)
        select p, md5(p::text)::uuid, p * 7919 %% %(hosts)s + 1, {due}, now() - interval '2 days', 200, 1,
               format('https://host%%s.test/section-%%s/the-article-%%s.html', p * 7919 %% %(hosts)s + 1, p %% 10, p),
               md5(p::text), md5(p::text)
        from generate_series(1, %(pages)s::bigint) p
        """,
        arguments,
    )
    connection.execute(
        "insert into queue (host_id, due_at, page_id) select host_id, due_at, page_id from page order by page_id"
    )
    connection.execute(
        """
        insert into host (host_id, name, head_due, ready_at, pages)
        select host_id, 'host' || host_id || '.test', min(due_at),
               greatest(min(due_at), now() - random() * interval '1 second'), count(*)
        from page group by host_id
        """
    )
    connection.execute("insert into host_name (name, host_id) select name, host_id from host")
    connection.execute("select setval('page_id', %(pages)s + 1), setval('host_id', %(hosts)s + 1)", arguments)


def load_new(connection: Connection, hosts: int = 1_000, rank: LiteralString = "-1") -> None:
    """The same pages, but none was fetched before."""
    load(connection, hosts=hosts)
    for statement in (
        f"insert into new_page (host_id, page_id, rank) select host_id, page_id, {rank} from page order by page_id",
        "truncate queue",
        "update page p set due_at = null, fetched_at = null, value = -n.rank "
        "from new_page n where n.page_id = p.page_id",
        """
        update host h set head_new_rank = n.rank, head_new_id = n.id, new_class = value_class(n.rank),
                          new_ready_at = h.ready_at, ready_at = 'infinity', head_due = 'infinity'
        from (select host_id, min(rank) as rank, min(page_id) as id from new_page group by host_id) n
        where n.host_id = h.host_id
        """,
        "select setval('new_classes', (select bit_or(1::bigint << new_class) from host))",
        "vacuum full page, host",
    ):
        connection.execute(statement)
