"""To look at: report, dashboard."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import click

from recrawl.cli.database import database, lasting_database
from recrawl.cli.mistyped import mistyped


@click.command()
@click.argument("file", default="recrawl.html", type=click.Path(dir_okay=False, allow_dash=True))
def report(file: str) -> None:
    """Write a report of the crawl: one HTML page.

    It needs no network. FILE is recrawl.html unless you say otherwise; - is standard output.

    A verdict and what to do, then how fresh the crawl is beside what is possible, where its fetches go, who is late and
    why, which hosts hold it back, and what changed since yesterday.
    """
    from recrawl import store
    from recrawl.view import report

    with database() as url, store.connect(url) as connection:
        html = report.html(report.read(connection))
    if file == "-":
        sys.stdout.buffer.write(html.encode())
        return
    if Path(file).exists() and not Path(file).is_file():  # a pipe or a device
        Path(file).write_text(html, encoding="utf-8")
    else:
        replace(Path(file).resolve(), html)
    click.echo(f"{file}: {len(html.encode()) / 1000:,.0f} kB")


def replace(file: Path, text: str) -> None:
    """A browser that looks meanwhile sees the old or the new one, not a part."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    os.close(handle)
    new = Path(name)
    try:
        new.write_text(text, encoding="utf-8")
        new.chmod(0o666 & ~current_umask())
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@click.command()
@click.option(
    "--listen",
    default="127.0.0.1:8035",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where to listen; port 0 finds a free one.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A host name by which browsers may ask for it too, with its port unless that is 80 or the one it listens on. "
    "Needed to listen elsewhere than on loopback.",
)
def dashboard(listen: str, names: tuple[str, ...]) -> None:
    """Show the report live in a browser, until Ctrl-C.

    A search explains a page, or a host. It reads as recrawl_reader and changes nothing: what to do stands there as SQL
    to copy. It has no login, so it listens on this machine only.
    """
    from recrawl.view.dashboard import Dashboard, listening

    with mistyped():
        address = listening(listen, names)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with lasting_database() as (url, restart):
        try:
            server = Dashboard(url, address, names, restart)
        except OSError as error:
            raise click.ClickException(f"cannot listen on {listen}: {error.strerror or error}") from None
        with server:
            try:
                server.connect().close()
            except PermissionError as error:
                raise click.ClickException(str(error)) from None
            click.echo(f"The dashboard is at {server.address} (Ctrl-C stops it)")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                click.echo("The dashboard stopped.")
