"""The progress of a job. Each step is a line. Its bar fills up if the size of the step is known."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from recrawl.jobs.job import Tell

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def steps() -> Iterator[Tell]:
    """Draws the steps on a terminal. Otherwise it writes a line when a step begins."""
    if not sys.stderr.isatty():
        yield _Steps(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    mark, name = SpinnerColumn(finished_text="✓"), TextColumn("{task.description}")
    share = TaskProgressColumn("{task.percentage:>3.0f} %")  # empty if the size of the step is not known
    console = Console(stderr=True, highlight=False)
    with Progress(mark, name, BarColumn(24), share, TimeElapsedColumn(), console=console) as bars:
        shown = _Steps(bars)
        yield shown
        shown.end()


class _Steps:
    """Each step is a task of `bars`. It ends when the next step begins. Without bars, each step is a line of text."""

    def __init__(self, bars: "Progress | None") -> None:
        self.bars, self.step = bars, ""

    def __call__(self, step: str, done: float | None = None, of: float | None = None) -> None:
        if step != self.step:
            self.end()
            self.step = step
            if self.bars:
                self.bars.add_task(step, total=None)
            else:
                click.echo(step, err=True)
        if self.bars:
            self.bars.update(self.bars.task_ids[-1], completed=done, total=of)

    def end(self) -> None:
        if self.bars and self.bars.tasks:
            last = self.bars.tasks[-1]
            self.bars.update(last.id, total=last.completed or 1, completed=last.completed or 1)
