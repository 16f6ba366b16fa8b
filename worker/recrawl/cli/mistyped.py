"""Errors in arguments that only the called code can detect."""

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def mistyped() -> Iterator[None]:
    """A ValueError in the block becomes a usage error."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from None
