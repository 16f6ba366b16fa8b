"""The command as a user has it: a process of its own, its words, its errors, its exit code."""

import gzip
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import click
import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.engine import make_url

import command
from helpers import eventually
from recrawl import cli
from recrawl.__main__ import main
from recrawl.cli.database import SECRETS, without_secrets

COMMAND = [sys.executable, "-m", "recrawl"]
SECRET = "s3cret-word"
COMMANDS = sorted(cli.cli.commands)


def environment(url: str | None) -> dict[str, str]:
    """The environment of the command: the database under test, and no settings of the developer."""
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL" and not name.startswith("PG")}
    path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return kept | {"PYTHONPATH": path, "COLUMNS": "120"} | ({"DATABASE_URL": url} if url else {})


def recrawl(url: str | None, *arguments: str, columns: int = 120, **more: Any) -> "subprocess.CompletedProcess[str]":
    return command.run("recrawl", *arguments, environment=environment(url) | {"COLUMNS": str(columns)}, **more)


def output(url: str | None, *arguments: str, **more: Any) -> str:
    done = recrawl(url, *arguments, **more)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def error(url: str | None, *arguments: str, **more: Any) -> str:
    """The one line it says before it gives up."""
    done = recrawl(url, *arguments, **more)
    assert done.returncode not in (0, 130)
    (line,) = [
        line for line in done.stderr.splitlines() if "━" not in line and "URLs" not in line
    ]  # but for the progress bar
    return line


def addresses(connection: psycopg.Connection) -> set[str]:
    return {url for (url,) in connection.execute("select url from page").fetchall()}


def acting_as(url: str, role: str) -> str:
    """The URL of the same database for somebody who may do no more than the role."""
    return f"{url}{'&' if '?' in url else '?'}options=-crole%3D{role}"


def on_a_screen(url: str, *arguments: str) -> str:
    """The text that a command writes to a terminal."""
    leader, follower = pty.openpty()
    streams: dict[str, Any] = {"stdin": follower, "stdout": follower, "stderr": follower}
    with subprocess.Popen([*COMMAND, *arguments], env=environment(url), **streams) as process:
        os.close(follower)
        said = b""
        with suppress(OSError):  # Linux says so when the other end is closed
            while more := os.read(leader, 10_000):
                said += more
    os.close(leader)
    assert process.returncode == 0, said
    return said.decode()


# -- help --


def test_help_names_every_command_and_the_one_setting() -> None:
    text = output(None, "--help")
    for name in COMMANDS:
        assert re.search(rf"^  {name}\b +\S", text, re.MULTILINE), name
    assert "DATABASE_URL" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_and_its_options(name: str) -> None:
    text = output(None, name, "--help")
    explained = cli.cli.commands[name]
    assert explained.help and explained.help.splitlines()[0] in " ".join(text.split())
    for parameter in explained.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"recrawl {name} {parameter.opts[0]}"
            assert all(option in text for option in parameter.opts)
    assert output(None, name, "-h") == text


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_every_help_ends_with_an_example_that_can_be_typed(name: str | None) -> None:
    text = output(None, *filter(None, [name]), "--help")
    examples = [shlex.split(line.partition(" > ")[0]) for line in text.partition("Example:\n")[2].splitlines()]
    assert examples
    for program, called, *arguments in examples:
        assert program == "recrawl" and called == (name or called)
        # click refuses unknown options and arguments. It keeps the names of the help option that it meets first.
        cli.cli.commands[called].make_context(called, arguments, **cli.cli.context_settings)


def test_bare_recrawl_shows_the_help() -> None:
    done = recrawl(None)
    assert "Usage:" in done.stdout + done.stderr
    assert all(name in done.stdout + done.stderr for name in COMMANDS)


def test_a_terminal_may_lack_characters_but_a_script_for_psql_has_all() -> None:
    latin = environment(None) | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([*COMMAND, "--help"], env=latin, capture_output=True)
    assert done.returncode == 0 and done.stderr == b""
    assert "and report(?) after the requests" in " ".join(done.stdout.decode("latin-1").split())
    script = subprocess.check_output([*COMMAND, "migrate", "--sql"], env=latin).decode()
    assert "\\encoding UTF8" in script and script == output(None, "migrate", "--sql")


def test_the_version_is_the_packages() -> None:
    assert re.search(r"\d+\.\d+", output(None, "--version"))


# -- looking and taking --


def test_migrate_says_where_and_can_put_the_schema_on_the_search_path(new_database: Callable[..., str]) -> None:
    database = new_database()
    assert "newest version" in output(database, "migrate")
    with psycopg.connect(database) as connection, pytest.raises(psycopg.errors.UndefinedFunction):
        connection.execute("select * from next_pages(1)")
    output(database, "migrate", "--search-path")
    with psycopg.connect(database) as connection:
        assert connection.execute("select * from next_pages(1)").fetchall() == []


def test_the_address_may_name_several_servers_with_their_ports(url: str) -> None:
    """As in the guide about a failover. Nothing listens at the first of these addresses."""
    parts = conninfo_to_dict(url)
    host, port = quote(str(parts.get("host", "localhost")), safe=""), parts.get("port", 5432)
    user = f"{parts['user']}:secret" if "user" in parts else ""
    several = f"postgresql://{user}@127.0.0.1:1,{host}:{port}/{parts['dbname']}?target_session_attrs=read-write"
    shown = several.replace("secret", "***")
    assert output(several, "migrate") == f"{shown} has the newest version\n"
    assert json.loads(output(several, "status", "--json"))["verdict"]["code"] == "empty"


@pytest.mark.parametrize("password", ["secret", "se?cret", "se?password=cret"])
def test_no_part_of_a_password_is_shown(password: str) -> None:
    shown = without_secrets(f"postgresql://anna:{password}@db.test/crawl?sslpassword=secret&port=5432")
    assert shown == "postgresql://anna:***@db.test/crawl?port=5432"


def test_no_secret_of_libpq_is_shown() -> None:
    known = {option.keyword.decode(): option.dispchar for option in psycopg.pq.Conninfo.get_defaults()}
    assert {name for name, shown_as in known.items() if shown_as == b"*" or name.endswith("_key")} <= {*SECRETS}
    for secret in SECRETS:
        assert without_secrets(f"postgresql://db.test/crawl?{secret}=a&port=5432") == (
            "postgresql://db.test/crawl?port=5432"
        )


def added(url: str, *urls: str) -> None:
    """Adds pages with the command, and waits until all of them are in the queue. On a busy machine this takes seconds:
    upkeep overlooks an entry of the inbox that is committed half a second after its time."""
    output(url, "add", *urls)
    with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl_internal") as db:
        upkeep = "select tick_at(clock_timestamp(), 100, 1000), exists (select from inbox)"
        eventually(lambda: db.execute(upkeep).fetchone() == (0, False))


def test_next_shows_a_table(url: str) -> None:
    added(url, "http://a.test/", "http://b.test/")
    lines = output(url, "next", "5").splitlines()
    assert {"page_id", "url", "fetch_at", "start_by", "value"} <= set(re.split(r"[ |]+", lines[0]))
    assert re.fullmatch(r"Leased to you until [\d: -]+. To release them: recrawl release \d+", lines[-1])
    assert {word for line in lines for word in line.split() if "://" in word} == {"http://a.test/", "http://b.test/"}
    assert output(url, "next", "5").startswith("no page can be fetched now")


def test_next_as_json_is_one_object_a_line(url: str) -> None:
    added(url, "http://a.test/1", "http://a.test/2", "http://b.test/")
    rows = [
        json.loads(line) for line in output(url, "next", "10", "--json", "--ahead", "5", "--lease", "90").splitlines()
    ]
    assert {row["url"] for row in rows} == {"http://a.test/1", "http://a.test/2", "http://b.test/"}
    assert all({"page_id", "lease_id", "fetch_at", "start_by", "wait", "attempt", "meta"} <= set(row) for row in rows)
    assert output(url, "next", "--json") == ""


def test_next_per_host(url: str) -> None:
    added(url, *(f"http://a.test/{i}" for i in range(5)))
    assert len(output(url, "next", "--json", "--ahead", "60", "--per-host", "2").splitlines()) == 2


def test_a_url_is_shown_as_it_is(url: str) -> None:
    added(url, "http://a.test/[/b]", "http://b.test/[bold]x[red]y")
    for name in ("look", "next"):
        said = output(url, name)
        assert "http://a.test/[/b]" in said and "http://b.test/[bold]x[red]y" in said.replace("\n", "")


def test_the_dashboards_file_goes_where_a_link_or_a_pipe_leads(url: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "there.html")
    output(url, "dashboard", "--file", str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink() and "</html>" in (tmp_path / "there.html").read_text()
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        output(url, "dashboard", "--file", str(tmp_path / "pipe"))
        assert "</html>" in reader.communicate(timeout=60)[0]


def test_a_report_that_cannot_be_written_names_its_file(url: str, tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "crawl.html"
    assert error(url, "dashboard", "--file", str(file)) == f"recrawl: cannot write {file}: No such file or directory"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("look 0", "0 is not in the range 1<=x<=2147483647"),
        ("look 2147483648", "2147483648 is not in the range 1<=x<=2147483647"),
        ("next 2147483648", "2147483648 is not in the range x<=2147483647"),
        ("next --per-host 2147483648", "2147483648 is not in the range x<=2147483647"),
        (f"release {2**63}", f"{2**63} is not in the range -9223372036854775808<=x<=9223372036854775807"),
    ],
)
def test_a_number_that_cannot_be_is_refused(arguments: str, says: str) -> None:
    assert says in error(None, *arguments.split())


@pytest.mark.parametrize("name", ["next", "look"])
def test_the_help_says_how_many_pages_there_are_without_a_number(name: str) -> None:
    (n,) = [parameter.default for parameter in cli.cli.commands[name].params if parameter.name == "n"]
    assert f"N pages (default {n})" in " ".join(output(None, name, "--help").split())


def test_a_look_leases_nothing_and_what_is_leased_can_be_given_back(url: str, connection: psycopg.Connection) -> None:
    added(url, A, B, "http://a.test/2")
    looked = [json.loads(line)["url"] for line in output(url, "look", "--json").splitlines()]
    assert sorted(looked) == [A, B]
    assert connection.execute("select from lease").fetchall() == []
    taken = [json.loads(line) for line in output(url, "next", "--json").splitlines()]
    lease_id = str(taken[0]["lease_id"])
    assert [json.loads(line)["url"] for line in output(url, "look", "--json").splitlines()] == ["http://a.test/2"]
    assert output(url, "release", lease_id, str(taken[0]["page_id"])) == "1 page released\n"
    assert output(url, "release", lease_id) == "1 page released\n"
    assert f"lease {lease_id} has no such page" in error(url, "release", lease_id)
    assert connection.execute("select from lease").fetchall() == []


def test_times_in_json_are_iso_8601(url: str) -> None:
    added(url, A, "http://a.test/2")
    for row in map(json.loads, output(url, "next", "--json", "--ahead", "5").splitlines()):
        for name in ("fetch_at", "start_by", "lease_until"):
            assert datetime.fromisoformat(row[name]).tzinfo and "T" in row[name], row[name]
        assert re.fullmatch(r"PT\d+(\.\d+)?S", row["wait"]), row["wait"]


LONG = "http://a-host-with-a-long-name.test/and/a/long/path/that/fills/more/than/one/line/of/a/terminal?q=1"


@pytest.mark.parametrize("width", [40, 80])
def test_nothing_is_cut_in_a_narrow_terminal(url: str, width: int) -> None:
    added(url, LONG, B)
    for name in ("look", "next"):
        done = recrawl(url, name, columns=width)
        assert done.returncode == 0, done.stderr
        assert "…" not in done.stdout
        text = done.stdout.partition("\n\nYours")[0]
        if width == 80:
            assert max(map(len, text.splitlines())) <= 80
            assert len({line.index("|") for line in text.splitlines() if "|" in line}) == 1
        else:
            assert LONG in text
        assert LONG in "".join(re.findall(r"[^\s|]+", re.sub(r"^[^|]*\|([^|]*)\|.*$", r"\1", text, flags=re.MULTILINE)))


def test_status_says_what_is_an_estimate(url: str, connection: psycopg.Connection) -> None:
    output(url, "add", A)
    assert "about" not in output(url, "status")
    connection.execute(
        "select count(*) from add_pages(array("
        "select format('http://h%s.test/%s', i % 500, i) from generate_series(1, 60000) i))"
    )
    assert re.search("^  new pages +about ", output(url, "status"), re.MULTILINE), "of the inbox"
    while connection.execute("select tick(1000, 30000)").fetchone() != (0,):
        pass
    (new,) = re.findall(r"^  new pages +about ([\d,]+)", output(url, "status"), re.MULTILINE)
    assert 40_000 < int(new.replace(",", "")) < 80_000


def test_psql_finds_the_functions_as_the_readme_writes_them(url: str) -> None:
    added(url, "http://a.test/")
    assert output(url, "psql", "-XAtc", "select url from next_pages(1)") == "http://a.test/\n"
    done = recrawl(url, "psql", "-Xc", "select nowhere")
    assert done.returncode == 1 and "Traceback" not in done.stderr


@pytest.mark.parametrize("secret", SECRETS[1:])
def test_psql_puts_no_secret_on_its_command_line(url: str, secret: str) -> None:
    said = error(f"{url}{'&' if '?' in url else '?'}{secret}={SECRET}", "psql", "-Xc", "")
    assert f"psql would show the {secret} " in said and SECRET not in said


def test_ctrl_c_in_psql_cancels_the_query_and_not_psql(url: str) -> None:
    with subprocess.Popen(
        [*COMMAND, "psql", "-Xc", "select pg_sleep(60)"],
        env=environment(url),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        asleep = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
        with psycopg.connect(url, autocommit=True) as connection:
            assert eventually(lambda: connection.execute(asleep).fetchone() == (1,))
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert "canceling statement due to user request" in said
    assert process.returncode == 1


# -- adding --

A, B = "http://a.test/", "http://b.test/"
DUMP = '{"discovered": {"info": {"url": "%s", "metadata": {"depth": {"values": ["1"]}}}}}\n'


def test_urls_are_added_as_given(url: str, connection: psycopg.Connection) -> None:
    assert output(url, "add", A, B, A) == "1 known, 2 new\n"
    assert addresses(connection) == {A, B}


def test_a_crawl_can_stay_on_the_hosts_of_its_first_urls(url: str, connection: psycopg.Connection) -> None:
    output(url, "add", "http://other.test/")
    said = output(url, "add", "--only-these-hosts", "http://A.test./x", "https://b.test:8443/")
    assert said == "From now on URLs of other hosts are excluded. 1 page on other hosts left the crawl.\n2 new\n"
    here = ["https://a.test/y", "http://a.test:81/", "http://b.test/"]
    there = ["http://www.a.test/", "http://a.test.evil.test/", "http://a-test/", "http://c.test/?http://a.test/"]
    codes = connection.execute("select code from recrawl.add_pages(%s)", [here + there]).fetchall()
    assert codes == [("new",)] * 3 + [("excluded",)] * 4


@pytest.mark.parametrize("sources", ["urls.txt", "http://a.test/ urls.txt", "http:///"])
def test_only_these_hosts_are_those_of_urls_and_not_of_a_file_which_may_have_millions(url: str, sources: str) -> None:
    done = recrawl(url, "add", "--only-these-hosts", *sources.split())
    assert done.returncode == 64 and "needs URLs and no files" in done.stderr


def test_the_progress_of_a_file_does_not_count_the_files_before_it(url: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("".join(f"http://a.test/{n}\n" for n in range(5)))
    second.write_text("http://b.test/1\nhttp://b.test/2\n")
    said = on_a_screen(url, "add", str(first), str(second))
    assert {*re.findall(r"(\d+) URLs", said)} == {"5", "2"}, said


@pytest.mark.parametrize("wrong", ["https://b.test:8o80/", "https://b te.st/"])
def test_only_these_hosts_with_a_url_of_no_host_changes_nothing(
    url: str, connection: psycopg.Connection, wrong: str
) -> None:
    output(url, "add", A)
    done = recrawl(url, "add", "--only-these-hosts", B, wrong)
    assert done.returncode == 64 and f"recrawl: --only-these-hosts: {wrong} names no host. Try" in done.stderr
    assert connection.execute("select from recrawl_internal.exclusion").fetchall() == []
    assert addresses(connection) == {A}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.txt", f"# a comment\n{A}\n\n{B}\n"),
        ("pages.csv", f"url,value,rate\n{A},2,0.5\n{B},,\n"),
        ("pages.jsonl", DUMP % A + DUMP % B),
        ("no-suffix", f"url,value\n{A},1\n{B},2\n"),
    ],
)
@pytest.mark.parametrize("way", ["file", "gz", "stdin"])
def test_every_format_comes_in_every_way(
    url: str, connection: psycopg.Connection, tmp_path: Path, name: str, text: str, way: str
) -> None:
    if way == "file":
        (tmp_path / name).write_text(text)
        said = output(url, "add", str(tmp_path / name))
    elif way == "gz":
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        said = output(url, "add", str(tmp_path / f"{name}.gz"))
    else:
        said = output(url, "add", "-", text=text)
    assert said == "2 new\n"
    assert addresses(connection) == {A, B}


def test_values_rates_and_meta_of_a_file_arrive(url: str, connection: psycopg.Connection, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"rate,url,value\n0.5,{A},3\n")
    (tmp_path / "b.jsonl").write_text(DUMP % B)
    assert output(url, "add", str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl")) == "2 new\n"
    rows = connection.execute("select value, pinned_rate as rate, meta from page order by url").fetchall()
    assert rows == [(3.0, 0.5, None), (1.0, None, {"depth": ["1"]})]


def test_files_and_urls_mix(url: str, connection: psycopg.Connection, tmp_path: Path) -> None:
    (tmp_path / "list").write_text(f"{A}\n")
    done = recrawl(url, "add", str(tmp_path / "list"), B)
    assert (done.stdout, done.stderr) == ("2 new\n", ""), "a bar is for terminals"
    assert addresses(connection) == {A, B}


def test_an_empty_file_adds_nothing(url: str) -> None:
    assert output(url, "add", "-", text="") == "no URLs\n"


def test_invalid_lines_are_told_and_harm_no_other(url: str, connection: psycopg.Connection) -> None:
    done = recrawl(url, "add", "-", text=f"{A}\nftp://c.test/\nhttp://user:word@d.test/\n{B}\n")
    assert done.returncode == 3
    assert done.stdout == "2 invalid, 2 new\n"
    assert re.search(r"invalid: 'ftp://c.test/': \S+", done.stderr)
    assert "credentials" in done.stderr
    assert addresses(connection) == {A, B}


def test_bad_lines_of_a_file_are_told_and_harm_no_other(url: str, connection: psycopg.Connection) -> None:
    done = recrawl(url, "add", "-", text=f"url,value\n{A},much\n{B},2\n")
    assert (done.returncode, done.stdout) == (3, "1 invalid, 1 new\n")
    assert "invalid: 'line 2': value must be a number, got 'much'" in done.stderr
    assert addresses(connection) == {B}


@pytest.mark.parametrize("arguments", [["next"], ["jobs"], ["add", A], ["worker"], ["run", "allocate"], ["plan"]])
def test_a_database_that_was_not_migrated_is_told_how(new_database: Callable[..., str], arguments: list[str]) -> None:
    said = error(new_database(), *arguments)
    assert said.endswith((
        "does not exist: Perhaps this database was not migrated: run `recrawl migrate`.",
        "The schema recrawl is missing. Run `recrawl migrate`",
    ))  # fmt: skip


@pytest.mark.parametrize("arguments", [["run", "upkeep"], ["run", "allocate"], ["plan"], ["compare"]])
def test_no_job_runs_on_a_database_of_another_version(
    url: str, connection: psycopg.Connection, arguments: list[str]
) -> None:
    connection.execute("update recrawl_internal.alembic_version set version_num = '0001'")
    assert error(url, *arguments).endswith("Run `recrawl migrate`")


def test_what_depends_on_a_table_that_an_upgrade_drops_is_named(connection: psycopg.Connection) -> None:
    connection.execute("create table mine (x int); create view public.on_it as select * from mine")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as raised:
        connection.execute("drop table mine")
    assert "view public.on_it depends on table" in (cli.explained(raised.value) or "")


def test_a_missing_part_of_recrawl_is_not_called_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "main", lambda: import_module("recrawl.gone"))
    with pytest.raises(ModuleNotFoundError, match=r"recrawl\.gone"):
        main()


def test_when_every_url_is_invalid_the_command_fails(url: str) -> None:
    done = recrawl(url, "add", *(f"ftp://{i}.test/" for i in range(7)))
    assert done.returncode == 3
    assert done.stdout == "7 invalid\n"
    assert done.stderr.splitlines()[-1] == "  invalid: 4 more"


DUMP_WITH = '{"discovered": {"info": {"url": "%s", "metadata": {"depth": {"values": [%s]}}}}}\n'


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "9" * 5000, "[" * 5000, '"\0"'])
def test_what_is_no_json_for_postgres_costs_its_own_line_only(
    url: str, connection: psycopg.Connection, value: str
) -> None:
    done = recrawl(url, "add", "-", text=DUMP % A + DUMP_WITH % ("http://c.test/", value) + DUMP % B)
    assert (done.returncode, done.stdout) == (3, "1 invalid, 2 new\n")
    assert "invalid: 'line 2': not JSON: " in done.stderr
    assert addresses(connection) == {A, B}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says how much memory a process took")
@pytest.mark.parametrize("head", ["", "url\n", DUMP % A], ids=["plain", "csv", "json"])
@pytest.mark.parametrize("way", ["plain", "gz"])
def test_a_line_without_end_is_invalid_and_takes_no_memory(
    url: str, connection: psycopg.Connection, tmp_path: Path, head: str, way: str
) -> None:
    with (gzip.open if way == "gz" else open)(tmp_path / "pages", "wb") as file:
        file.write(head.encode())
        for _ in range(100):
            file.write(b"{" + b"x" * 999_999)
        file.write(f"\n{B}\n".encode())
    # Not ru_maxrss: it can be the higher number of the process that this one was forked from.
    peak = "import re; from recrawl.cli import main; import atexit; atexit.register(lambda: print("
    peak += "re.search(r'VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1])); main()"
    done = subprocess.run(
        [sys.executable, "-c", peak, "add", "pages"], env=environment(url), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 3
    said, kilobytes = done.stdout.splitlines()
    assert said == ("1 invalid, 2 new" if "discovered" in head else "1 invalid, 1 new")
    assert "longer than 1,000,000 characters" in done.stderr
    assert B in addresses(connection)
    assert int(kilobytes) < 150_000


@pytest.mark.parametrize("number", [signal.SIGINT])
def test_ctrl_c_counts_what_is_in_and_it_can_go_on(url: str, connection: psycopg.Connection, number: int) -> None:
    lines = "".join(f"http://h{i % 100}.test/{i}\n" for i in range(30_000))
    with subprocess.Popen(
        [*COMMAND, "add", "-"],
        env=environment(url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin
        process.stdin.write(lines)  # and no end: it waits for more, or is at work, when it is interrupted
        process.stdin.flush()
        assert eventually(lambda: len(addresses(connection)) > 3000)
        process.send_signal(number)
        said, errors = process.communicate()
    assert process.returncode == 130
    kept = len(addresses(connection))
    assert said.splitlines()[0] == f"{kept:,} new"
    assert "You can add the same URLs again" in said
    assert errors.splitlines()[0].startswith("recrawl: stopping")
    assert "Traceback" not in errors
    said = output(url, "add", "-", text=lines)
    assert said == f"{kept:,} known" + (f", {30_000 - kept:,} new\n" if kept < 30_000 else "\n")


# -- errors --


def truncated() -> bytes:
    """A .gz of many URLs without its end."""
    return gzip.compress("".join(f"http://h{i}.test/{i * 7919 % 1000}\n" for i in range(5000)).encode())[:-2000]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("no-url.csv", b"uri\nhttp://a.test/\n", "header: unknown column 'uri'"),
        ("torn.csv", b'"url\nhttp://a.test/\n', "line 1: not CSV: unexpected end of data"),
        ("truncated.gz", truncated(), "ended before the end-of-stream marker"),
        ("tiny.gz", gzip.compress(b"http://a.test/\n")[:9], "ended before the end-of-stream marker"),
        ("garbled.gz", gzip.compress(b"")[:10] + b"\xff" * 30, "Error -3"),
    ],
    ids=["header", "torn", "truncated", "tiny", "garbled"],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(
    url: str, tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    line = error(url, "add", name, cwd=tmp_path)
    assert line.startswith(f"recrawl: {name}: ")
    assert says in line


def test_what_came_before_a_torn_end_stays(url: str, connection: psycopg.Connection, tmp_path: Path) -> None:
    (tmp_path / "torn.gz").write_bytes(truncated())
    done = recrawl(url, "add", "torn.gz", cwd=tmp_path)
    assert done.returncode == 1 and "torn.gz: Compressed file ended" in done.stderr
    assert done.stdout.splitlines()[0] == f"{len(addresses(connection)):,} new"
    assert "You can add the same URLs again" in done.stdout
    assert len(addresses(connection)) > 3000


def test_a_stray_quote_costs_its_own_line_only(url: str, connection: psycopg.Connection) -> None:
    done = recrawl(url, "add", "-", text=f'url,value\n"{A},1\n{B},2\n')
    assert (done.returncode, done.stdout) == (3, "1 invalid, 1 new\n")
    assert addresses(connection) == {B}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", "no-such-file.txt"], "no-such-file.txt"),
        (["add", "."], "."),
        (["add"], "Missing argument"),
        (["fetch"], "No such command 'fetch'"),
        (["--frobnicate"], "--frobnicate"),
        (["next", "many"], "many"),
        (["next", "0"], "n must be positive, got 0"),
        (["next", "--ahead", "3600"], "ahead must lie between 0 and the setting max_ahead"),
        (["next", "--ahead", "soon"], "'soon' is not a number of seconds"),
        (["next", "--lease", "nan"], "'nan' is not a number of seconds"),
        (["next", "--lease", "0"], "lease must lie between 1 second and the setting longest_lease (1 day)"),
        (["next", "--per-host", "0"], "per_host must be positive, got 0"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_misuse_is_one_line(url: str, tmp_path: Path, arguments: list[str], says: str) -> None:
    line = error(url, *arguments, cwd=tmp_path)
    assert line.startswith("recrawl: ")
    assert says in line


WRONG_ADDRESSES = {
    "port": f"postgresql://user:{SECRET}@127.0.0.1:9/nowhere",
    "host": f"postgresql://user:{SECRET}@no-such-host.invalid/nowhere",
    "bracket": f"postgresql://user:{SECRET}@[::1/nowhere",
    "no number": f"postgresql://user:{SECRET}@host:port/nowhere",
    "two @": f"postgresql://user:word@{SECRET}@host/nowhere",
    "query": f"postgresql://user@/nowhere?host=/no/such/folder&password={SECRET}",
    "keywords": f"host=/no/such/folder password={SECRET}",
    "no scheme": f"//user:{SECRET}@host/nowhere",
    "another scheme": f"mysql://user:{SECRET}@host/nowhere",
}
# Alembic, psycopg and several threads of psycopg each say it in their own words.
NEEDING_A_DATABASE = ["migrate", "next", "add -", "add http://a.test/", "status", "compare", "worker", "up"]


@pytest.mark.parametrize(
    ("what", "command"),
    [(what, command) for what in WRONG_ADDRESSES for command in NEEDING_A_DATABASE[:2]]
    + [("port", command) for command in NEEDING_A_DATABASE[2:]],
)
def test_a_wrong_address_is_one_line_without_the_password(what: str, command: str) -> None:
    line = error(WRONG_ADDRESSES[what], *command.split(), text="http://a.test/\n")
    assert line.startswith("recrawl: ")
    assert SECRET not in line


@pytest.mark.parametrize("arguments", [["migrate"], ["up"]], ids=" ".join)
@pytest.mark.parametrize("where", ["authority", "query"])
def test_no_output_shows_the_password(url: str, arguments: Sequence[str], where: str) -> None:
    parts = make_url(url)
    if where == "authority":
        secret = parts.set(password=SECRET).render_as_string(hide_password=False)
    else:
        secret = parts.update_query_dict({"password": SECRET}).render_as_string(hide_password=False)
    with Running(secret, *arguments) as running:
        if arguments == ["up"]:
            running.until("at work")
            running.process.send_signal(signal.SIGTERM)
        said, errors = running.process.communicate(timeout=600)
    assert running.process.returncode == 0, errors
    assert "database" in running.said + said or "newest version" in said
    assert SECRET not in running.said + said + errors


@pytest.mark.parametrize("arguments", [["jobs"], ["next"], ["worker"], ["add", "http://a.test/"]], ids=" ".join)
def test_a_database_that_was_not_migrated_is_one_line(
    new_database: Callable[..., str], arguments: Sequence[str]
) -> None:
    line = error(new_database(), *arguments)
    assert "does not exist" in line or "migrate" in line


# -- up and worker --

IS_WORKER = "datname = current_database() and application_name = 'recrawl worker'"


class Running:
    """The command while it runs."""

    def __init__(self, url: str, *arguments: str, **variables: str) -> None:
        self.said = ""
        variables |= {"PYTHONUNBUFFERED": "1"}
        self.process = command.Running("recrawl", *arguments, environment=environment(url) | variables)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.__exit__()

    def until(self, words: str) -> None:
        limit = threading.Timer(120, self.process.kill)
        limit.start()
        try:
            while words not in self.said:
                line = self.process.stdout.readline()
                assert line, f"{self.said!r} and then {self.ended()}"
                self.said += line
        finally:
            limit.cancel()

    def ended(self) -> str:
        self.process.kill()
        return self.process.communicate()[1]

    def stop(self, number: signal.Signals) -> str:
        """Stops the command. Returns its standard error without the line that it waits for the database, which a slow
        stop writes."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=120)
        return "".join(line for line in errors.splitlines(keepends=True) if "waiting for it" not in line)


@pytest.fixture(params=["up", "worker"])
def running(request: pytest.FixtureRequest, url: str) -> Iterator[Running]:
    with Running(url, request.param) as running:
        running.until("at work")
        yield running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0, 0.5], ids=["at once", "later"])
def test_it_stops_cleanly_when_told(running: Running, number: signal.Signals, after: float) -> None:
    time.sleep(after)
    errors = running.stop(number)
    assert running.process.returncode == 0
    assert errors == ""


def test_it_stops_although_its_step_waits_for_a_lock(running: Running, connection: psycopg.Connection) -> None:
    waits = f"select count(*) from pg_stat_activity where {IS_WORKER} and wait_event_type = 'Lock'"
    connection.execute("begin")
    connection.execute("lock table lease")
    with psycopg.connect(connection.info.dsn, autocommit=True) as other:
        assert eventually(lambda: other.execute(waits).fetchone() == (1,))
        errors = running.stop(signal.SIGTERM)
    assert running.process.returncode == 0
    assert errors == ""


def test_it_stops_although_there_is_much_to_do(running: Running, connection: psycopg.Connection) -> None:
    for job in ("rates", "opic", "allocate"):
        connection.execute("select set_setting(%s, 'none')", [f"{job}_every"])
    connection.execute(
        "select count(*) from add_pages(array("
        "select format('http://h%s.test/%s', i % 500, i) from generate_series(1, 60000) i))"
    )
    assert eventually(lambda: connection.execute("select from new_page limit 1").fetchone() is not None)
    errors = running.stop(signal.SIGTERM)
    assert running.process.returncode == 0
    assert errors == ""
    assert waiting(connection), "it did not wait until all is done"
    left = connection.execute("select (select count(*) from inbox) + (select count(*) from new_page)").fetchone()
    assert left == (60000,)


def waiting(connection: psycopg.Connection) -> bool:
    return connection.execute("select from inbox limit 1").fetchone() is not None


def test_new_pages_come_in_while_it_runs(running: Running, connection: psycopg.Connection) -> None:
    connection.execute("select add_pages(array['http://a.test/'])")
    assert eventually(lambda: not waiting(connection))


def test_it_works_on_after_its_connection_was_cut(running: Running, connection: psycopg.Connection) -> None:
    cut = f"select pg_terminate_backend(pid) from pg_stat_activity where {IS_WORKER}"
    for _ in range(2):
        assert eventually(lambda: connection.execute(cut).fetchall() == [(True,)])
        connection.execute("select add_pages(array[format('http://a.test/%s', clock_timestamp()::text)])")
        assert eventually(lambda: not waiting(connection))
    errors = running.stop(signal.SIGINT)
    assert running.process.returncode == 0
    assert "Traceback" not in errors
    assert "does not answer" in errors and "answers again" in errors


def test_a_database_that_is_away_is_told_once(running: Running, url: str, server: str) -> None:
    """Renamed and closed to everybody, it is as good as gone; nobody wants five lines a second about it."""
    name = make_url(url).database
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"alter database {name} allow_connections false")
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        time.sleep(1.5)
        admin.execute(f"alter database {name} allow_connections true")
    with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal") as connection:
        connection.execute("select add_pages(array['http://a.test/'])")
        assert eventually(lambda: not waiting(connection))
    errors = running.stop(signal.SIGTERM)
    assert errors.count("does not answer, trying again") == 1


def test_the_workers_role_is_enough_for_the_worker(url: str) -> None:
    as_worker = acting_as(url, "recrawl_worker")
    with Running(as_worker, "worker") as running:
        running.until("at work")
        assert running.stop(signal.SIGTERM) == ""


class Embedded(Running):
    """The command without DATABASE_URL, on a data directory of its own."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.home = home
        super().__init__("", *arguments, RECRAWL_DATA_DIR=str(home))

    def url(self) -> str:
        self.until("at work")
        found = re.search(r"export DATABASE_URL='(.*)'", self.said)
        assert found
        return found[1]

    def postmaster(self) -> psutil.Process:
        return psutil.Process(int((self.home / "cluster" / "postmaster.pid").read_text().split()[0]))

    def left_running(self) -> list[psutil.Process]:
        return [p for p in psutil.process_iter(["cmdline"]) if str(self.home) in " ".join(p.info["cmdline"] or [])]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_without_database_url_runs_a_server_of_its_own_and_takes_it_along(
    open_folder: Path, number: signal.Signals
) -> None:
    with Embedded(open_folder / f"up-{number.name}", "up") as running:
        url = running.url()
        assert "recrawl look 5" in running.said
        with psycopg.connect(url) as connection:
            connection.execute("select * from next_pages(5)")
        errors = running.stop(number)
    assert running.process.returncode == 0
    assert [line for line in errors.splitlines() if "waiting for PostgreSQL" not in line] == [], "but on a slow machine"
    assert not running.left_running()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def answers(url: str, query: str, expected: object) -> bool:
    try:
        with psycopg.connect(url) as connection:
            return connection.execute(query).fetchone() == (expected,)
    except psycopg.OperationalError:
        return False


def add(url: str, page: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select add_pages(array[%s])", [page])


def test_up_starts_its_server_again_and_again_when_that_is_killed_and_a_second_one_says_so(open_folder: Path) -> None:
    home = open_folder / "up-killed"
    with Embedded(home, "up") as running:
        url = running.url()
        for times in (1, 2):
            add(url, f"http://a.test/{times}")
            running.postmaster().kill()
            assert eventually(partial(answers, url, "select count(*) from recrawl_internal.page", 2 * times - 1))
            assert eventually(partial(answers, url, "select count(*) from recrawl_internal.inbox", 0))
            # The worker logs that the database answers again when its run has ended. Then the next run takes this page.
            add(url, f"http://b.test/{times}")
            assert eventually(partial(answers, url, "select count(*) from recrawl_internal.inbox", 0))
        with Embedded(home, "up") as second:
            assert second.url() == url
            assert "1 other worker already runs. This one helps with upkeep" in second.said
            second.stop(signal.SIGINT)
            assert second.process.returncode == 0
        errors = running.stop(signal.SIGINT)
    assert running.process.returncode == 0
    assert errors.count("does not answer, trying again") == errors.count("answers again") == 2
    assert "Traceback" not in errors
    assert not running.left_running()


def test_up_whose_server_cannot_be_started_again_ends_with_the_reason(open_folder: Path) -> None:
    home = open_folder / "up-broken"
    with Embedded(home, "up") as running:
        running.url()
        with (home / "cluster" / "postgresql.conf").open("a") as settings:
            settings.write("\nshared_buffers = nonsense\n")
        running.postmaster().kill()
        _, errors = running.process.communicate(timeout=600)
    assert running.process.returncode == 1
    last = errors.splitlines()[-1]
    assert last.startswith("recrawl: PostgreSQL did not start in ") and "contains errors; see " in last
    assert "Traceback" not in errors
    assert not running.left_running()


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    """A disk of its own that is soon full."""
    disk = open_folder / "small-disk"
    disk.mkdir(exist_ok=True)  # a test that was skipped leaves it
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m,mode=755", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk, and not in every container")
    yield disk
    subprocess.check_call(["umount", "--lazy", disk])
    disk.rmdir()


def complaints(running: Running, words: str) -> str:
    """The lines on standard error up to the one with these words, within two minutes."""
    said = ""
    end = threading.Timer(120, running.process.kill)
    end.start()
    while words not in said:
        line = running.process.stderr.readline()
        assert line, said
        said += line
    end.cancel()
    return said


@pytest.mark.parametrize("on_it", ["the write-ahead log", "everything"])
def test_up_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(
    home_of_a_crawl: Callable[[str], Path], open_folder: Path, small_disk: Path, on_it: str
) -> None:
    home = home_of_a_crawl(f"up-full-{on_it.split()[-1]}")
    if on_it == "everything":
        subprocess.check_call(["cp", "-Rp", home, small_disk / "home"])
        home = small_disk / "home"
    else:
        log = home / "cluster" / "pg_wal"
        subprocess.check_call(["cp", "-Rp", log, small_disk])
        log.rename(home / "unused")
        log.symlink_to(small_disk / "pg_wal")
    with Embedded(home, "up") as running:
        url = running.url()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("select recrawl.add_pages('{http://a.test/}')")
        filler = small_disk / "filler"
        with filler.open("wb") as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
        with psycopg.connect(url, autocommit=True) as connection, suppress(psycopg.OperationalError):
            while True:
                connection.execute("select pg_logical_emit_message(false, '', repeat('x', 1000000))")
        said = complaints(running, "is full")
        assert re.search(r"^recrawl: the disk of \S+ is full. PostgreSQL starts again when there is room$", said, re.M)
        time.sleep(4)  # it tries at ever longer intervals: five times
        assert running.process.poll() is None, "it waits"
        filler.unlink()
        assert eventually(partial(answers, url, "select count(*) from recrawl_internal.page", 1))
        with psycopg.connect(url, autocommit=True) as connection:
            assert connection.execute("select url from recrawl.next_pages()").fetchall() == [("http://a.test/",)]
        said += complaints(running, "answers again") + running.stop(signal.SIGINT)
    assert running.process.returncode == 0
    assert said.count("is full") == 1 and "Traceback" not in said
    assert not running.left_running()


def test_a_password_with_odd_characters_reaches_alembic(url: str) -> None:
    odd = quote("p@ss:/?#%40 w", safe="")
    output(re.sub(r"^(\w+://[^:@/]*)(:[^@/]*)?@", rf"\1:{odd}@", url), "migrate")
