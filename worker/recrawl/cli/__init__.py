"""The command line of recrawl. An error is one line, and the exit code is not 0."""

import re
import sys
from io import TextIOWrapper
from itertools import chain

import click

from recrawl.cli import compare, jobs, pages, server, status, view
from recrawl.cli.database import EPILOG
from recrawl.cli.explain import explain
from recrawl.cli.urlfrontier import urlfrontier
from recrawl.lab.commands import demo, experiment, simulate

MISTYPED = 64  # the exit code of sysexits.h; status and doctor use 2, which is click's default, for trouble

SECTIONS: dict[str, list[click.Command]] = {
    "Start": [demo.demo, server.up, pages.add],
    "See how the crawl is doing": [status.status, status.doctor, status.jobs, explain, view.dashboard],
    "Do by hand what a crawler does": [pages.look, pages.next_command, pages.release],
    "Decide how often pages are fetched": [jobs.run_command, jobs.plan],
    "Compare policies": [compare.compare, simulate.simulate, experiment.experiment],
    "Serve other crawlers": [urlfrontier],
    "Run the database and the worker": [server.migrate_command, server.worker, server.psql],
}


class Sections(click.Group):
    """The help lists the commands by purpose, each with its whole first sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{c.name:{width}}", c.get_short_help_str(limit=1000)) for c in commands])


@click.group(
    cls=Sections, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="recrawl")
def cli() -> None:
    """A crawl scheduler embedded in Postgres.

    A crawler calls two SQL functions: SELECT * FROM next_pages(100), and report(…) after the requests.
    These commands set up the database, run the worker, and show how the crawl is doing.
    """


for command in chain.from_iterable(SECTIONS.values()):
    cli.add_command(command)


def main() -> None:
    """Runs a command. An error becomes one line on standard error."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack characters of a text
    try:
        sys.exit(cli(standalone_mode=False))
    except click.Abort:
        sys.exit(130)
    except click.UsageError as error:
        if len(sys.argv) == 1:  # bare `recrawl`: the error is the help
            error.show()
            sys.exit(MISTYPED)
        message = error.format_message()
        if error.ctx:
            message += f"{'' if message.endswith(('.', '?')) else '.'} Try: {error.ctx.command_path} --help"
        fail(message, MISTYPED)
    except click.ClickException as error:
        fail(error.format_message())
    except Exception as error:
        line = explained(error)
        if line is None:
            raise
        fail(line)


# Commands that need another role than recrawl_reader. `up` and `migrate` need the owner of the tables.
ROLE = {"add": "recrawl_operator", "next": "recrawl_crawler", "release": "recrawl_crawler"} | dict.fromkeys(
    ("look", "run", "plan", "compare", "worker"), "recrawl_worker"
)


def explained(error: Exception) -> str | None:
    """The message of an error that a user can correct, otherwise None. The imports are slow, and --help needs none."""
    import psycopg

    from recrawl.client.database import no_connection
    from recrawl.setup.folder import EmbeddedError

    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        return no_connection(error)
    if isinstance(error, psycopg.Error):
        message, hint = str(error.diag.message_primary or error), error.diag.message_hint or ""
        if isinstance(error, psycopg.errors.DependentObjectsStillExist):
            hint = error.diag.message_detail or ""  # names the objects
        if re.search(r"recrawl.*does not exist", message) and sys.argv[1:2] != ["migrate"]:
            hint = "Perhaps this database was not migrated: run `recrawl migrate`."
        elif isinstance(error, psycopg.errors.InsufficientPrivilege):
            hint = hint or who_may(sys.argv[1])
        elif isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            hint = (
                "The database is a replica, or its setting default_transaction_read_only is on. Some providers set it "
                "when the disk is almost full."
            )
        return f"{message}: {hint}" if hint else message
    if isinstance(error, EmbeddedError | ValueError | OSError):  # an ImportFileError is a ValueError
        return str(error)
    return None


def who_may(name: str) -> str:
    """A sentence with the role that a login needs for a command."""
    if name in ("up", "migrate"):
        return f"`recrawl {name}` migrates the tables: only the owner of the database and of the tables can do this."
    role = ROLE.get(name, "recrawl_reader")
    return f"`recrawl {name}` needs the role {role}. The owner of the database can GRANT {role} TO this login."


def fail(message: str, code: int = 1) -> None:
    click.echo(f"recrawl: {' '.join(message.split())}", err=True)
    sys.exit(code)
