"""docs/commands.md is what `--help` says: `make golden` writes it."""

import os
from pathlib import Path

import click

from recrawl import cli

PAGE = Path(__file__).parents[2] / "docs/commands.md"

HEAD = """# Commands

This document shows the `--help` of each command. `make golden` writes it, and a test fails if a help has changed.

A command uses the database that the environment variable `DATABASE_URL` names. Without `DATABASE_URL` it uses the
embedded PostgreSQL. The variable `RECRAWL_DATA_DIR` names the folder of the embedded PostgreSQL.

## Exit codes

| code | meaning | commands |
|---|---|---|
| 0 | Success. `status`: there is no trouble. `doctor`: all checks are well. | all |
| 1 | An error. `status` and `doctor`: the database does not answer. | all |
| 2 | There is trouble. | `status`, `doctor` |
| 3 | `doctor`: there is a warning. `add`: some lines are invalid, the other lines are added. | `doctor`, `add` |
| 4 | There is no such page. | `explain` |
| 64 | The command line has a mistake. | all |
| 130 | Ctrl-C stopped the command. | all |
"""


def commands() -> str:
    parts = [HEAD.rstrip()]
    context = click.Context(cli.cli, info_name="recrawl", **cli.cli.context_settings)
    for title, members in cli.SECTIONS.items():
        parts.append(f"## {title}")
        for command in members:
            formatter = click.HelpFormatter(width=80)
            command.format_help(click.Context(command, context, info_name=command.name), formatter)
            parts.append(f"### recrawl {command.name}\n\n```text\n{formatter.getvalue().rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def test_the_page_shows_the_help_of_every_command() -> None:
    shown = commands()
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(shown)
    assert shown.splitlines() == PAGE.read_text().splitlines(), "a command's help changed: run `make golden`"
