"""Commands that bring things up: up, migrate, worker, psql."""

import logging
import os
import shutil
import signal
import subprocess
import sys

import click
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recrawl.cli.database import database, without_password


@click.command()
def up() -> None:
    """Bring everything up: the database, its newest version, a worker. Ctrl-C stops."""
    from recrawl.setup import migrate

    with database() as url:
        migrate.upgrade(url)
        click.echo(f"The database is at {without_password(url)}")
        click.echo("Try `recrawl psql`, then: SELECT * FROM next_pages(5)")
        work(url)


@click.command("migrate")
@click.option("--search-path", is_flag=True, help="Also put the schema recrawl on this database's search_path.")
def migrate_command(search_path: bool) -> None:
    """Bring the database to the newest version (also: alembic upgrade head)."""
    from recrawl import store
    from recrawl.setup import migrate

    with database() as url:
        migrate.upgrade(url)
        if search_path:
            with store.connect(url) as connection:
                store.put_on_search_path(connection)
        click.echo(f"{without_password(url)} is at the newest version")


@click.command()
def worker() -> None:
    """Look after the queue until Ctrl-C: leases that ran out go back, new pages come in, all within half a second.

    Without a worker the same happens inside next_pages, only less promptly.
    """
    with database() as url:
        work(url)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql on the database, with the schema recrawl on its search_path."""
    from recrawl.setup import embedded

    with database() as url:
        program = shutil.which("psql") or str(embedded.program("psql"))
        target = conninfo_to_dict(url)
        secret = {"PGPASSWORD": str(target.pop("password"))} if "password" in target else {}
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is psql's: it cancels a query
        options = f'{os.environ.get("PGOPTIONS", "")} -c search_path="$user",public,recrawl'.strip()
        code = subprocess.run(
            [program, make_conninfo("", **target), *arguments],
            env=os.environ | {"PGOPTIONS": options} | secret,  # a command line is everybody's to read
            check=False,
        ).returncode
    sys.exit(code)


def work(url: str) -> None:
    from recrawl import schedule

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    schedule.run(url, ready=lambda: click.echo("The worker is at work; Ctrl-C stops it."))
