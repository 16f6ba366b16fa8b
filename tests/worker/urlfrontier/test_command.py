"""`recrawl urlfrontier`: what it says when it cannot serve."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import command
from worker.urlfrontier.conftest import Command


def refusal(url: str, *arguments: str) -> str:
    done = command.run("recrawl", "urlfrontier", *arguments, environment=os.environ | {"DATABASE_URL": url})
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.strip()


def test_without_its_extra_it_says_what_to_type() -> None:
    without = "import sys; sys.modules['grpc'] = None; sys.argv = ['recrawl', 'urlfrontier']"
    run = f"{without}; from recrawl.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "recrawl: grpc is missing; install it with: pip install 'recrawl[urlfrontier]'\n"


def test_it_says_where_it_is_and_no_more(url: str, tmp_path: Path) -> None:
    command = Command(url, tmp_path / "log")
    command.stop()
    assert command.log.read_text() == ""


def test_a_port_that_is_taken_is_refused(url: str, tmp_path: Path) -> None:
    first = Command(url, tmp_path / "log")
    said = refusal(url, "--listen", f"127.0.0.1:{first.port}")
    assert said.endswith(f"cannot listen on 127.0.0.1:{first.port}: it is taken, or no address of this machine")
    first.stop()


def test_an_ipv6_address_is_told_in_brackets(url: str) -> None:
    there = ["urlfrontier", "--listen", "[::1]:0"]
    with command.Running("recrawl", *there, environment=os.environ | {"DATABASE_URL": url}) as server:
        assert re.search(r"server is at \[::1\]:\d+;", server.stdout.readline())
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 0


def test_a_database_that_is_no_crawl_is_refused(new_database: Callable[..., str]) -> None:
    assert "has no tables of recrawl yet. Run `recrawl migrate`" in refusal(new_database(), "--listen", "127.0.0.1:0")
    away = "postgresql://nobody@127.0.0.1:1/nothing"
    assert "recrawl: cannot connect to the database" in refusal(away, "--listen", "127.0.0.1:0")
