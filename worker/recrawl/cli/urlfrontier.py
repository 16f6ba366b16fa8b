"""The command that serves the gRPC interface of URLFrontier."""

import logging
import signal

import click

from recrawl.cli.common import Address, address, example, needs
from recrawl.cli.database import lasting_database
from recrawl.words import in_url

GRACE = 5.0  # seconds for calls in progress


@click.command(epilog=example("recrawl urlfrontier", "recrawl urlfrontier --listen 0.0.0.0:7071 --schedule recrawl"))
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:7071",
    show_default=True,
    callback=address,
    help="Address and port for clients. Everybody who reaches it can operate the crawl.",
)
@click.option(
    "--schedule",
    type=click.Choice(["client", "recrawl"]),
    default="client",
    show_default=True,
    help="Which side decides when a page is fetched again.",
)
def urlfrontier(listen: Address, schedule: str) -> None:
    """Serve the gRPC interface of URLFrontier, for StormCrawler and others, until Ctrl-C.

    Clients send the date of the next fetch of each URL. If you pass --schedule recrawl, these dates are ignored:
    recrawl learns from each fetch and decides itself. In both cases also run a worker: recrawl worker.
    """
    with needs("urlfrontier"):
        from recrawl.urlfrontier import service  # noqa: F401
    import asyncio  # not at the top: it would be a sixth of the start time of every command

    with lasting_database(makes=True) as (url, _):
        asyncio.run(run(url, listen, schedule == "client"))


async def run(url: str, listen: Address, client_sets_dates: bool) -> None:
    import asyncio

    from recrawl.client import Error
    from recrawl.setup import migrate
    from recrawl.urlfrontier.crawls import Crawls
    from recrawl.urlfrontier.service import serve

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it writes lines when the database of a crawl is made
    crawls = Crawls(url, migrate.upgrade)
    try:
        await crawls.open()
    except Error as error:
        raise click.ClickException(str(error)) from None
    stop = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    host, port = listen
    server, bound = await serve(crawls, host, port, client_sets_dates)
    click.echo(f"The URLFrontier server is at {in_url(host)}:{bound}; Ctrl-C stops it.")
    await stop.wait()
    await crawls.close_puts()  # otherwise streams would wait for the answers to their puts
    await server.stop(GRACE)
    await crawls.close()
