"""The command that shows the crawl in a browser, or writes it into a file: dashboard."""

import secrets
import signal
import sys
from contextlib import suppress
from pathlib import Path

import click

from recrawl.cli.common import Address, address, example, mistyped
from recrawl.cli.database import connected, lasting_database
from recrawl.words import in_url, size


def write(file: str) -> None:
    from recrawl.view import overview

    with connected() as connection:
        html = overview.html(overview.read(connection))
    if file == "-":
        sys.stdout.buffer.write(html.encode())
        return
    try:
        if Path(file).exists() and not Path(file).is_file():  # a pipe or a device
            Path(file).write_text(html, encoding="utf-8")
        else:
            replace(Path(file).resolve(), html)
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from None
    click.echo(f"{file}: {size(len(html.encode()))}")


def replace(file: Path, text: str) -> None:
    """A browser that reads the file at this moment gets the old or the new file, never a part."""
    new = file.with_name(f".recrawl-{secrets.token_hex(8)}")
    try:
        with new.open("x", encoding="utf-8") as begun:
            begun.write(text)
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


@click.command(
    epilog=example(
        "recrawl dashboard",
        "recrawl dashboard --file crawl.html",
        "recrawl dashboard --listen 0.0.0.0:8035 --name crawl.example.com",
    )
)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write the dashboard into this HTML file instead, which needs no network. - is standard output.",
)
@click.option(
    "--listen",
    default="127.0.0.1:8035",
    show_default=True,
    metavar="ADDRESS:PORT",
    callback=address,
    help="Address and port to listen on. Port 0 takes any free port.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A name under which browsers may open the dashboard, in addition to the address of --listen. Required if "
    "other machines can reach the address of --listen.",
)
def dashboard(file: str | None, listen: Address, names: tuple[str, ...]) -> None:
    """Show the crawl live in a browser, until Ctrl-C.

    The dashboard says whether the crawl works and what to fix. It shows how many copies are up to date, how many
    fetches found a change or failed, and what differs from yesterday. It lists late pages with the reason, and hosts
    whose gap (the minimum time between two requests) is too long. You can search for a page or a host: the dashboard
    then says why the page or the host is not fetched now.

    The dashboard uses the rights of the role recrawl_reader, so it changes nothing: it shows each fix as SQL to copy.
    It asks for no password, so by default it listens on this machine only.
    """
    from psycopg.errors import QueryCanceled

    from recrawl.view.dashboard import Dashboard, listening

    if file == "":
        raise click.UsageError("--file is empty: it needs the name of a file")
    if file:
        write(file)
        return
    with mistyped():
        listen = listening(listen, names)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with lasting_database() as (url, restart):
        try:
            server = Dashboard(url, listen, names, restart)
        except OSError as error:
            raise click.ClickException(
                f"cannot listen on {in_url(listen[0])}:{listen[1]}: {error.strerror or error}"
            ) from None
        with server:
            with suppress(QueryCanceled):  # a slow database may be quicker later
                server.report()  # other errors end the command here, before anybody opens the page
            click.echo(f"The dashboard is at {server.address} (Ctrl-C stops it)")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                click.echo("The dashboard stopped.")
