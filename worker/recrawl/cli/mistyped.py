"""What is wrong with what was typed, where only those who work with it can tell."""

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def mistyped() -> Iterator[None]:
    """A ValueError within is about an argument."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from None
