"""Commands for the database and the worker: up, migrate, worker, psql."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from io import TextIOWrapper

import click

from recrawl.cli.common import Address, address, example
from recrawl.cli.database import (
    SECRETS,
    database,
    given_url,
    lasting_database,
    refuse_another_version,
    without_secrets,
)
from recrawl.words import in_url

NEXT = """Next, in another terminal:
  recrawl add https://example.com/
  recrawl look 5
  recrawl status"""


metrics_option = click.option(
    "--metrics",
    metavar="HOST:PORT",
    callback=address,
    help="Also serve metrics for Prometheus there. Everybody who reaches the address can read them.",
)


@click.command(epilog=example("recrawl up", "recrawl up --metrics 127.0.0.1:9888"))
@metrics_option
def up(metrics: Address | None) -> None:
    """Run the database and a worker, which runs the jobs, until Ctrl-C.

    The tables are migrated to the newest version first. If the embedded PostgreSQL ends, it is restarted. If
    DATABASE_URL is set, recrawl uses that server and starts none.
    """
    from recrawl.setup import migrate

    with lasting_database(makes=True) as (url, restart):
        migrate.upgrade(url)
        if given_url():
            click.echo(f"The database is at {without_secrets(url)}")
        else:
            click.echo(f"Your crawlers need this setting:\nexport DATABASE_URL='{url}'")
        click.echo(NEXT)
        work(url, restart, metrics)


@click.command("migrate", epilog=example("recrawl migrate", "recrawl migrate --sql > recrawl.sql"))
@click.option("--search-path", is_flag=True, help="Also put the schema recrawl on the search_path of the database.")
@click.option(
    "--roles/--no-roles",
    "with_roles",
    default=None,
    help="--no-roles creates no role, and no role gets a right: your login owns and uses everything. "
    "The database remembers the choice.",
)
@click.option(
    "--sql", "as_sql", is_flag=True, help="Change no database. Write SQL: psql can run it later to install recrawl."
)
def migrate_command(search_path: bool, with_roles: bool | None, as_sql: bool) -> None:
    """Create the tables, or migrate them to the newest version.

    You can run this command again at any time. In a checkout `alembic upgrade head` does the same.
    """
    from recrawl import store
    from recrawl.setup import migrate

    if as_sql:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # the script has the line \encoding UTF8
        migrate.write_script(sys.stdout, with_roles)
        if search_path:
            click.echo(f"{store.SEARCH_PATH};")
        return
    with database(makes=True, with_roles=with_roles) as url:
        migrate.upgrade(url, with_roles)
        if search_path:
            with store.connect(url) as connection:
                connection.execute(store.SEARCH_PATH)
        click.echo(f"{without_secrets(url)} has the newest version")
        if advice := migrate.missing_grant(url):
            click.echo(advice, err=True)


@click.command(epilog=example("recrawl worker", "recrawl worker --metrics 127.0.0.1:9888"))
@metrics_option
def worker(metrics: Address | None) -> None:
    """Do the upkeep of the queue and run the batch jobs, until Ctrl-C.

    The settings rates_every, opic_every and allocate_every are the intervals of the jobs. Young crawls run each job
    more often, a job that failed runs again soon, and allocate also runs soon after you change a setting or a host. If
    several workers run, one of them runs the jobs. If it dies or freezes, another one takes over within a minute.
    Without a worker the function next_pages does the upkeep, with some delay. The batch jobs then do not run.
    """
    with lasting_database(makes=True) as (url, restart):
        work(url, restart, metrics)


@click.command(
    context_settings={"ignore_unknown_options": True}, epilog=example("recrawl psql -c 'SELECT * FROM queue_status'")
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql, with the schema recrawl on its search_path.

    All arguments are passed to psql.
    """
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from recrawl.setup import programs

    with database(makes=True) as url:
        program = shutil.which("psql") or str(programs.program("psql"))
        target = conninfo_to_dict(url)
        secret = {"PGPASSWORD": str(target.pop("password"))} if "password" in target else {}
        if shown := [name for name in SECRETS if name in target]:
            raise click.ClickException(
                f"psql would show the {shown[0]} of DATABASE_URL to everybody on this machine: "
                "put the connection into ~/.pg_service.conf, and run psql 'service=…'"
            )
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is psql's: it cancels a query
        given = target.pop("options", os.environ.get("PGOPTIONS", ""))
        options = f'{given} -c search_path="$user",public,recrawl'.strip()
        code = subprocess.run(
            [program, make_conninfo("", **target), *arguments],
            env=os.environ | {"PGOPTIONS": options} | secret,  # everybody on this machine can read a command line
            check=False,
        ).returncode
    sys.exit(code)


def work(url: str, restart: Callable[[], None], metrics: Address | None) -> None:
    from recrawl import store
    from recrawl.jobs import clock

    with store.connect(url) as connection:
        refuse_another_version(connection)
        if others := store.calls.workers(connection):
            run = "worker already runs" if others == 1 else "workers already run"
            click.echo(f"{others} other {run}. This one helps with upkeep.")
    with ExitStack() as stack:
        if metrics:
            from recrawl.view.metrics import served

            port = stack.enter_context(served(url, *metrics))
            click.echo(f"The metrics for Prometheus are at http://{in_url(metrics[0])}:{port}/metrics")
        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
        clock.run(url, ready=lambda: click.echo("The worker is at work; Ctrl-C stops it."), restart=restart)
    click.echo(
        "The worker stopped." if given_url() else "The worker stopped. PostgreSQL stops unless other commands use it."
    )
