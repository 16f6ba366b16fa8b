"""What is measured on: pages of a realistic size, loaded by direct INSERTs, and the yardstick's table."""

from typing import LiteralString

import psycopg

Connection = psycopg.Connection[tuple[object, ...]]

PAGES_A_HOST = 50
# A page that is handed out now is due again 23 hours later: its queue row says so at once, no report moves it.
DUE: LiteralString = "now() - random() * interval '1 hour'"
DUE_LATER: LiteralString = "now() + interval '1 hour' + random() * interval '1 day'"
REF_ROWS = 1_000_000


def host_of(page: int, hosts: int) -> int:
    """Neighbours by id are on different hosts, as pages are that were found one after another."""
    return page * 7919 % hosts + 1


def url_of(page: int, hosts: int) -> str:
    return f"https://host{host_of(page, hosts)}.example.com/section-{page % 10}/the-article-of-the-day-{page}.html"


def load_pages(
    connection: Connection, hosts: int, pages: int, *, due: LiteralString = DUE, first_page: int = 1
) -> None:
    """Adds pages first_page … pages, on hosts 1 … hosts that are new as far as no page of theirs was loaded yet."""
    arguments = {"hosts": hosts, "pages": pages, "first": first_page}
    connection.execute("set search_path = recrawl_internal, pg_temp")
    # Slots are exactly a gap apart: ten of them within nine gaps, a hundred within ninety-nine.
    connection.execute("select recrawl.set_setting('start_within', '0')")
    connection.execute(
        f"""
        insert into page (
            page_id, key, host_id, due_at, fetched_at, reported_at,
            last_status, fetches, changes, url, content_hash, etag
        )
        select page_id, url_key(url), host_id, {due}, now() - interval '25 hours', now() - interval '25 hours',
               200, 5, 1, url, md5(url), '"' || md5(url || 'e') || '"'
        from generate_series(%(first)s::bigint, %(pages)s) as page_id
        cross join lateral (select page_id * 7919 %% %(hosts)s + 1 as host_id) h
        cross join lateral (
            select format('https://host%%s.example.com/section-%%s/the-article-of-the-day-%%s.html',
                          host_id, page_id %% 10, page_id) as url
        ) u
        """,
        arguments,
    )
    connection.execute(
        """
        insert into queue (host_id, due_at, page_id)
        select host_id, due_at, page_id from page where page_id >= %(first)s order by page_id
        """,
        arguments,
    )
    connection.execute(
        """
        insert into host_name (name, host_id)
        select 'host' || h || '.example.com', h from generate_series(1, %(hosts)s::bigint) h
        on conflict do nothing
        """,
        arguments,
    )
    connection.execute(
        """
        insert into host (host_id, name, head_due, ready_at, pages)
        select host_id, 'host' || host_id || '.example.com', min(due_at),
               greatest(min(due_at), now() - random() * interval '1 minute'), count(*)
        from page
        where page_id >= %(first)s
        group by host_id
        on conflict do nothing
        """,
        arguments,
    )
    connection.execute("select setval('page_id', %(pages)s), setval('host_id', %(hosts)s)", arguments)
    connection.execute("vacuum (analyze) page, queue, host, host_name")


def load_ref(connection: Connection) -> None:
    """The yardstick's table: narrow, with one index beside its primary key."""
    connection.execute(
        "create table public.ref (id bigint primary key, due timestamptz, pad text) with (fillfactor = 90)"
    )
    connection.execute("create index on public.ref (due)")
    connection.execute(
        "insert into public.ref select i, now() + i * interval '1 ms', 'x' from generate_series(1, %s) i", [REF_ROWS]
    )
    connection.execute("vacuum (analyze) public.ref")


def warm(connection: Connection, hosts: int) -> None:
    """Reads what the next visits of so many hosts will touch, the way they do, so that none of it is read from disk."""
    connection.execute("set search_path = recrawl_internal, pg_temp")
    connection.execute("set enable_hashjoin = off; set enable_mergejoin = off; set enable_seqscan = off; set jit = off")
    connection.execute(
        """
        select count(p.etag)
        from (select host_id from host order by ready_at limit %s) h
        cross join lateral (select page_id from queue q where q.host_id = h.host_id offset 0) q
        cross join lateral (select etag from page where page_id = q.page_id offset 0) p
        """,
        [hosts],
    )
    connection.execute("reset all")
    connection.execute("select count(*), max(due) from public.ref")
