"""recrawl … on the command line: arguments in, words out. Errors are one line and the exit code is not 0."""

import re
import sys
from itertools import chain

import click

from recrawl.cli import demo, experiment, jobs, laboratory, look, pages, server, view
from recrawl.cli.database import EPILOG
from recrawl.cli.explain import explain
from recrawl.cli.urlfrontier import urlfrontier

MISTYPED = 64  # the exit code, as sysexits.h has it; click's 2 is what status and doctor say of trouble

SECTIONS: dict[str, list[click.Command]] = {
    "To begin": [demo.demo, server.up, pages.add],
    "How it does": [look.status, look.top, look.doctor, look.jobs, explain, view.report, view.dashboard],
    "What crawlers get": [pages.look, pages.next_command, pages.release],
    "How often pages are fetched": [jobs.run_command, jobs.plan, jobs.audit_command],
    "What policies are worth": [laboratory.compare, laboratory.simulate, experiment.experiment],
    "Doors for other crawlers": [urlfrontier],
    "The database and its worker": [server.migrate_command, server.worker, server.psql],
}


class Sections(click.Group):
    """Its help lists the commands by what they are for, each with its first sentence, uncut."""

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

    A crawler needs nothing of this: it says SELECT * FROM next_pages(100), fetches, and says report(…).
    These commands set the database up, look after it, and look at it.
    """


for command in chain.from_iterable(SECTIONS.values()):
    cli.add_command(command)


def main() -> None:
    """Runs a command; whatever goes wrong becomes one line on standard error."""
    try:
        sys.exit(cli(standalone_mode=False))
    except click.Abort:
        sys.exit(130)
    except click.UsageError as error:
        if len(sys.argv) == 1:  # bare `recrawl`: the error is the help
            error.show()
            sys.exit(MISTYPED)
        message = error.format_message()
        more = (
            f"{'' if message.endswith(('.', '?')) else '.'} Try: {error.ctx.command_path} --help" if error.ctx else ""
        )
        fail(message + more, MISTYPED)
    except click.ClickException as error:
        fail(error.format_message())
    except Exception as error:
        line = explained(error)
        if line is None:
            raise
        fail(line)


def explained(error: Exception) -> str | None:
    """One line for an error that a user can mend; None for other errors. Imports late: `--help` needs none of it."""
    import psycopg

    from recrawl.setup.embedded import EmbeddedError

    if isinstance(error, psycopg.Error):
        message, hint = str(error.diag.message_primary or error), error.diag.message_hint or ""
        if re.search(r"recrawl.*does not exist", message) and sys.argv[1:2] != ["migrate"]:
            hint = "Perhaps this database was not migrated: say `recrawl migrate`."
        elif isinstance(error, psycopg.errors.InsufficientPrivilege):
            hint = hint or "As the database's owner GRANT this login recrawl_reader to look, recrawl_operator to steer."
        return f"{message}: {hint}" if hint else message
    if isinstance(error, EmbeddedError | ValueError | OSError):  # an ImportFileError is a ValueError
        return str(error)
    return None


def fail(message: str, code: int = 1) -> None:
    click.echo(f"recrawl: {' '.join(message.split())}", err=True)
    sys.exit(code)
