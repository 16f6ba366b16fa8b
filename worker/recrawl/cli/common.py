"""Parts that several commands share: examples in help texts, errors in arguments, missing libraries, addresses."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import click

Address = tuple[str, int]


def example(*commands: str, notes: str = "") -> str:
    """The end of a help text: some notes, then commands to copy. Click leaves these as they are because of the \\b."""
    lines = "\n".join(f"  {command}" for command in commands)
    return f"{notes}\n\n\b\nExample:\n{lines}"


@contextmanager
def mistyped() -> Iterator[None]:
    """A ValueError in the block becomes a usage error: some arguments can only be checked by the called code."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from None


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """The block imports libraries that are installed only with this extra of recrawl."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "recrawl"):
            raise
        raise click.ClickException(f"{missing} is missing; install it with: pip install 'recrawl[{extra}]'") from None


def address(_context: click.Context, _option: click.Parameter, value: str | None) -> Address | None:
    """HOST:PORT, or only PORT, which means 127.0.0.1:PORT. An IPv6 address needs brackets: the end of ::1:80 may be a
    port."""
    if value is None:
        return None
    found = re.fullmatch(r"(?:\[([^][]+)\]:|([^][:]*):)?([0-9]{1,5})", value)
    if not found or int(found[3]) > 65535:
        raise click.BadParameter(f"{value!r} is not like 127.0.0.1:9888 or [::1]:9888")
    return found[1] or found[2] or "127.0.0.1", int(found[3])
