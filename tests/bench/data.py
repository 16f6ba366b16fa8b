"""The data of the measurements: pages of a realistic size, loaded by direct INSERTs, and the table of the yardstick."""

from typing import LiteralString

import psycopg

Connection = psycopg.Connection[tuple[object, ...]]

PAGES_A_HOST = 50
# A page that is handed out now is due again 23 hours later: its queue row says so at once, no report moves it.
DUE: LiteralString = "now() - random() * interval '1 hour'"
A_TENTH_DUE: LiteralString = "now() + interval '1 day' * (random() - 0.1)"
DUE_LATER: LiteralString = "now() + interval '1 hour' + random() * interval '1 day'"
REF_ROWS = 1_000_000
HOST: LiteralString = "page_id * 7919 %% %(hosts)s + 1"  # neighbours by id are on different hosts
AN_ELEVENTH_OF_ONE_HOST: LiteralString = f"case when page_id %% 11 = 0 then 1 else {HOST} end"


def host_of(page: int, hosts: int) -> int:
    """Neighbours by id are on different hosts, as pages are that were found one after another."""
    return page * 7919 % hosts + 1


def url_of(page: int, hosts: int) -> str:
    return f"https://host{host_of(page, hosts)}.example.com/section-{page % 10}/the-article-of-the-day-{page}.html"


def load_pages(
    connection: Connection,
    hosts: int,
    pages: int,
    *,
    due: LiteralString = DUE,
    host: LiteralString = HOST,
    first_page: int = 1,
) -> None:
    """Adds pages first_page … pages, on hosts 1 … hosts that are new as far as no page of theirs was loaded yet."""
    arguments = {"hosts": hosts, "pages": pages, "first": first_page}
    connection.execute("set search_path = recrawl_internal, pg_temp")
    # Slots are exactly a gap apart: ten of them within nine gaps, a hundred within ninety-nine.
    connection.execute("select recrawl.set_setting('window_share', '0')")
    connection.execute(
        f"""
        insert into page (
            page_id, key, host_id, due_at, fetched_at, reported_at,
            last_status, successes, changes, value, seen_changes, seen_days, url, content_hash, etag
        )
        select page_id, url_key(url), host_id, {due}, now() - interval '25 hours', now() - interval '25 hours',
               200, 5, 1, 0.1 + random(), 5 * random(), 5, url, md5(url), '"' || md5(url || 'e') || '"'
        from generate_series(%(first)s::bigint, %(pages)s) as page_id
        cross join lateral (select {host} as host_id) h
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


def load_past(connection: Connection) -> None:
    """The rows behind the views of history, as many as the settings keep: a quiet crawl whose jobs run regularly."""
    connection.execute("set search_path = recrawl_internal, pg_temp")
    for table, kept, step in (("vital", "keep_vitals", "1 minute"), ("vital_hour", "keep_history", "1 hour")):
        connection.execute(
            f"""
            insert into {table} (
                at, fetches, changed, unchanged, late_1m, late_seconds, handed_out, calls, pages_added, due,
                due_crawler, new_waiting, leased, pages, hosts, hosts_ready, fresh, fresh_error, covered, expected,
                limit_with_gaps, budget)
            select at, 6000, 2000, 4000, 5000, 30000, 6000, 70, 100, 100000, 100, 500000, 1000, 10000000, 200000, 10,
                   0.7 + random() / 10, 0.001, 0.95, 0.75, 0.8, 10000000
            from setting
            cross join generate_series(date_trunc('hour', now()) - {kept}, now() - interval '1 minute', %s) at
            """,
            [step],
        )
    connection.execute(
        """
        insert into job (token, job, started_at, alive_until, ended_at, ok, message)
        select nextval('job_token'), r.job, r.at, r.at + interval '5 minutes', r.at + interval '1 minute', true,
               'freshness 0.7519 (at most 0.8012) with 9.5e+06 of 9.5e+06 fetches a day, beside 500,000 of new pages'
        from (select j.job, at
              from setting
              cross join (values ('rates', interval '6 hours'), ('opic', '6 hours'), ('allocate', '1 hour'))
                  as j (job, every)
              cross join lateral generate_series(now() - keep_history, now() - interval '1 day', j.every) at
              order by at) r
        """
    )
    connection.execute(
        """
        insert into allocation (
            token, started_at, seconds, policy, objective, budget, for_revisits, price, pages, hosts, capped_hosts,
            utility, limit_with_gaps, limit_without_gaps, residual, spread, duality_gap, longest_days, for_new)
        select token, started_at, 60, 'opt_polite', 'freshness', 10000000, 9500000, 0.1, 10000000, 200000, 1, 0.7519,
               0.8012, 0.81, 1e-9, 1e-9, 1e-9, 60, 500000
        from job where job = 'allocate'
        """
    )
    connection.execute(
        """
        insert into opic (token, started_at, pages, links, sweeps, residual, converged, cash, moved, seconds)
        select token, started_at, 10000000, 100000000, 20, 1e-6, true, 10000001, 1000, 60
        from job where job = 'opic'
        """
    )
    connection.execute(
        "insert into event (at, kind, subject, says) select ended_at, 'job', job, message from job order by ended_at"
    )
    connection.execute("vacuum (analyze) vital, vital_hour, job, allocation, opic, event")


def load_ref(connection: Connection) -> None:
    """The table of the yardstick: narrow, with one index in addition to its primary key."""
    connection.execute(
        "create table public.ref (id bigint primary key, due timestamptz, pad text) with (fillfactor = 90)"
    )
    connection.execute("create index on public.ref (due)")
    connection.execute(
        "insert into public.ref select i, now() + i * interval '1 ms', 'x' from generate_series(1, %s) i", [REF_ROWS]
    )
    connection.execute("vacuum (analyze) public.ref")


def warm(connection: Connection, hosts: int) -> None:
    """Reads all rows that the next visits of some hosts will touch, so that they are not read from disk later."""
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
