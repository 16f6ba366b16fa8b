"""The command that serves URLFrontier's gRPC."""

import asyncio
import logging
import signal

import click

from recrawl.cli.database import lasting_database
from recrawl.cli.server import Address, address

GRACE = 5.0  # seconds to finish the calls that are being answered


@click.command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:7071",
    show_default=True,
    callback=address,
    help="Where clients find it. A client that reaches it may steer the crawl.",
)
@click.option(
    "--schedule",
    type=click.Choice(["client", "recrawl"]),
    default="client",
    show_default=True,
    help="Who says when a page is fetched again.",
)
def urlfrontier(listen: Address, schedule: str) -> None:
    """Serve URLFrontier's gRPC, as for StormCrawler, until Ctrl-C.

    With --schedule recrawl the dates that clients send are left alone, and a page that they fetched is an observation.
    A worker should run at the same time: recrawl worker.
    """
    try:
        from recrawl.urlfrontier import service  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in ("grpc", "google", "google.protobuf"):
            raise
        needed = f"this needs {error.name.partition('.')[0]}, which comes with: pip install 'recrawl[urlfrontier]'"
        raise click.ClickException(needed) from None
    with lasting_database(makes=True) as (url, _):
        asyncio.run(run(url, listen, schedule == "client"))


async def run(url: str, listen: Address, obeys: bool) -> None:
    from recrawl.client import Error
    from recrawl.setup import migrate
    from recrawl.urlfrontier.crawls import Crawls
    from recrawl.urlfrontier.service import serve

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)  # earlier, Alembic would log too
    crawls = Crawls(url, migrate.upgrade)
    try:
        await crawls.open()
    except Error as error:
        raise click.ClickException(str(error)) from None
    stop = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    host, port = listen

    def ready(bound: int) -> None:
        click.echo(f"URLFrontier's gRPC is at {host}:{bound}; Ctrl-C stops it.")

    server = await serve(crawls, host, port, obeys, ready)
    await stop.wait()
    await crawls.close()
    await server.stop(GRACE)
