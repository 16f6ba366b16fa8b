"""A database may have any settings that PostgreSQL allows. Crawlers, commands and jobs work with them. If they cannot,
one line says which setting is wrong."""

import json
import re
import signal
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from crawler import Crawl, Site
from helpers import run_job
from recrawl import store
from recrawl.jobs.registry import JOBS
from web import Answer, Web, links
from worker.cli.test_cli import error, output, recrawl
from worker.cli.test_status import worker

TEXT = {
    "array_nulls": "off", "bytea_output": "escape", "client_encoding": "SQL_ASCII", "datestyle": "German",
    "default_text_search_config": "simple", "extra_float_digits": "-15", "intervalstyle": "iso_8601",
    "quote_all_identifiers": "on", "timezone": "Asia/Kathmandu", "timezone_abbreviations": "India",
    "transform_null_equals": "on", "xmlbinary": "hex", "xmloption": "document",
}  # fmt: skip
OTHER_TEXT = {
    "client_encoding": "LATIN1", "datestyle": "SQL, DMY", "extra_float_digits": "0", "intervalstyle": "sql_standard",
    "timezone": "America/New_York",
}  # fmt: skip
PLANS = {
    f"enable_{way}": "off"
    for way in (
        "bitmapscan", "hashagg", "hashjoin", "incremental_sort", "indexonlyscan", "indexscan", "material", "memoize",
        "mergejoin", "nestloop", "seqscan", "sort", "tidscan",
    )
} | {
    "from_collapse_limit": "1", "geqo_threshold": "2", "jit": "on", "jit_above_cost": "0", "join_collapse_limit": "1",
    "plan_cache_mode": "force_generic_plan", "random_page_cost": "100", "work_mem": "64kB",
}  # fmt: skip
SESSIONS = {
    "backslash_quote": "off", "check_function_bodies": "off", "default_toast_compression": "pglz",
    "default_transaction_deferrable": "on", "escape_string_warning": "off",
    "idle_in_transaction_session_timeout": "30s", "idle_session_timeout": "3s", "lock_timeout": "5s",
    "plan_cache_mode": "force_custom_plan", "row_security": "off", "search_path": "nowhere",
    "statement_timeout": "60s", "synchronous_commit": "off",
}  # fmt: skip


@pytest.mark.parametrize(
    "settings", [TEXT, OTHER_TEXT | PLANS, SESSIONS], ids=["text", "other text and plans", "sessions"]
)
def test_a_database_may_have_any_settings(
    url: str,
    db: psycopg.Connection[Any],
    web: Web,
    site: Site,
    on_server: Callable[..., None],
    settings: dict[str, str],
) -> None:
    for name, value in settings.items():
        on_server(f"alter database {{}} set {name} = '{value}'", db.info.dbname)
    start = f"http://127.0.0.2:{web.port}"
    site.answers |= {"/": Answer(body=links(["/a"])), "*": Answer(body=b"hello")}
    assert output(url, "add", f"{start}/", f"{start}/Zürich?a='\\x41'") == "2 new\n"
    crawl = Crawl(url)
    crawl.run(20, until=lambda: crawl.client.counts["ok"] == 2)
    said = output(
        url, "psql", "-XAtc",
        """
        select from recrawl.add_pages('{http://b.test/}');
        select code from recrawl.next_pages() p
        cross join lateral recrawl.report(jsonb_build_array(jsonb_build_object(
            'page_id', p.page_id, 'lease_id', p.lease_id, 'status', 200, 'fetched_at', p.fetch_at))) r;
        select recrawl.set_interval('{1}', interval '3 days');
        select recrawl.set_setting('default_gap', '3 s');
        table recrawl.page_status; table recrawl.host_status;
        """,
    )  # fmt: skip
    assert said.startswith("ok\n"), said
    for name, job in JOBS.items():
        assert output(url, "run", name) if job.is_batch else run_job(name, url)
    verdict = json.loads(output(url, "status", "--json"))["verdict"]["code"]
    assert verdict in ("gaps_set_pace", "no_worker")  # the second one if the jobs took more than a minute
    for command in ("jobs allocate", "plan", "compare", "explain http://b.test/", "dashboard --file -", "look", "next"):
        assert output(url, *command.split()), command
    assert recrawl(url, "doctor").returncode == 3, "no worker runs"
    with worker(url) as process:
        time.sleep(3)
        process.send_signal(signal.SIGTERM)
        said, errors = process.communicate()
        # If the stop takes long, the worker writes a line about that.
        assert (said, re.sub(".*waiting for it\n", "", errors)) == ("The worker stopped.\n", "")


def test_a_job_may_compute_for_longer_than_a_session_may_be_idle(
    url: str, db: psycopg.Connection[Any], on_server: Callable[..., None]
) -> None:
    on_server("alter database {} set idle_session_timeout = '3s'", db.info.dbname)
    with store.connect(url) as connection:
        time.sleep(4)
        assert connection.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("default_transaction_isolation = 'serializable'", r"must be READ COMMITTED, got SERIALIZABLE: ALTER ROLE \w+"),
        (
            "default_transaction_read_only = on",
            "in a read-only transaction: The database is a replica, or its setting default_transaction_read_only is on",
        ),
    ],
)
def test_a_setting_with_which_nothing_works_is_named(
    url: str, db: psycopg.Connection[Any], on_server: Callable[..., None], setting: str, says: str
) -> None:
    on_server(f"alter database {{}} set {setting}", db.info.dbname)
    for command in ("add http://a.test/", "next", "release 1"):
        assert re.search(says, error(url, *command.split())), command
