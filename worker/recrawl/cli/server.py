"""Commands that bring things up: up, migrate, worker, psql."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import click

from recrawl.cli import live
from recrawl.cli.database import database, given_url, lasting_database, without_password

Address = tuple[str, int]

NEXT = """Next, in another terminal:
  recrawl add https://example.com/
  recrawl psql -c 'SELECT * FROM next_pages(5)'
  recrawl status"""


def address(_context: click.Context, _option: click.Parameter, value: str | None) -> Address | None:
    """HOST:PORT, or a port of this machine alone."""
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{value!r} is not like 127.0.0.1:9888")
    return host.strip("[]") or "127.0.0.1", int(port)


metrics_option = click.option(
    "--metrics",
    metavar="HOST:PORT",
    callback=address,
    help="Also serve metrics to Prometheus there, as in 127.0.0.1:9888; whoever reaches it can read them.",
)


@click.command()
@metrics_option
def up(metrics: Address | None) -> None:
    """Run the database and a worker, until Ctrl-C.

    The database is brought to the newest version first. The embedded PostgreSQL is started again should it end; where
    it cannot be, this ends with the reason. With DATABASE_URL it is your server, and recrawl starts none.
    """
    from recrawl.setup import migrate

    with lasting_database(makes=True) as (url, restart):
        migrate.upgrade(url)
        if given_url():
            click.echo(f"The database is at {without_password(url)}")
        else:
            click.echo(f"Crawlers find the database so:\nexport DATABASE_URL='{url}'")
        click.echo(NEXT)
        work(url, restart, metrics, live.line(url))


@click.command("migrate")
@click.option("--search-path", is_flag=True, help="Also put the schema recrawl on this database's search_path.")
def migrate_command(search_path: bool) -> None:
    """Bring the database to the newest version, also an empty one.

    In a checkout alembic upgrade head does the same. To do it again is safe.
    """
    from recrawl import store
    from recrawl.setup import migrate

    with database(makes=True) as url:
        migrate.upgrade(url)
        if search_path:
            with store.connect(url) as connection:
                store.put_on_search_path(connection)
        click.echo(f"{without_password(url)} is at the newest version")


@click.command()
@metrics_option
def worker(metrics: Address | None) -> None:
    """Look after the queue and run the batch jobs, until Ctrl-C.

    The settings rates_every, opic_every and allocate_every say how often each job runs; it also comes early when it is
    worth it, and soon again after it failed. Of several workers one does the jobs, and another within seconds of its
    death. Without a worker next_pages looks after the queue itself, less promptly, and nobody does the jobs.
    """
    with lasting_database(makes=True) as (url, restart):
        work(url, restart, metrics, nullcontext())


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql, with the schema recrawl on its search_path.

    Arguments go to psql: recrawl psql -c 'SELECT * FROM queue_status'
    """
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from recrawl.setup import embedded

    with database(makes=True) as url:
        program = shutil.which("psql") or str(embedded.program("psql"))
        target = conninfo_to_dict(url)
        if "sslpassword" in target:
            raise click.ClickException(
                "psql would show the sslpassword of DATABASE_URL to everybody on this machine: "
                "put the connection into ~/.pg_service.conf, and say psql 'service=…'"
            )
        secret = {"PGPASSWORD": str(target.pop("password"))} if "password" in target else {}
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is psql's: it cancels a query
        given = target.pop("options", os.environ.get("PGOPTIONS", ""))
        options = f'{given} -c search_path="$user",public,recrawl'.strip()
        code = subprocess.run(
            [program, make_conninfo("", **target), *arguments],
            env=os.environ | {"PGOPTIONS": options} | secret,  # a command line is everybody's to read
            check=False,
        ).returncode
    sys.exit(code)


def work(url: str, restart: Callable[[], None], metrics: Address | None, shown: AbstractContextManager[None]) -> None:
    from recrawl import store
    from recrawl.jobs import clock

    with store.connect(url) as connection:
        if others := store.verbs.workers(connection):
            run = "worker runs" if others == 1 else "workers run"
            click.echo(f"{others} other {run} on it already; this one helps with upkeep.")
    with shown, served(url, metrics):
        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
        clock.run(url, ready=lambda: click.echo("The worker is at work; Ctrl-C stops it."), restart=restart)
    click.echo("The worker stopped." if given_url() else "The worker stopped; PostgreSQL stops, unless others use it.")


@contextmanager
def served(url: str, address: Address | None) -> Iterator[None]:
    """Metrics, where they are asked for."""
    if address is None:
        yield
        return
    from recrawl.view import metrics

    host, port = address
    stop = metrics.serve(url, host, port)
    click.echo(f"Prometheus finds metrics at http://{f'[{host}]' if ':' in host else host}:{port}/metrics")
    try:
        yield
    finally:
        stop()
