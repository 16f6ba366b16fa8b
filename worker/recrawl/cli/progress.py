"""The progress of a job. Each step is a line: with a bar if its size is known, otherwise with a spinner."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from recrawl.jobs.job import Tell
from recrawl.words import count, percent

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@contextmanager
def steps() -> Iterator[Tell]:
    """Draws the steps on a terminal. Otherwise it writes a line when a step begins."""
    if not sys.stderr.isatty():
        yield _Steps(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Share(ProgressColumn):
        def render(self, task: Task) -> Text:
            if task.total is None:
                return Text(count(task.completed) if task.completed else "")
            return Text(percent(task.percentage / 100, 0).rjust(6))

    class Bar(BarColumn):
        """Empty if the size of the step is not known."""

        def render(self, task: Task) -> object:  # type: ignore[override]
            return "" if task.total is None else super().render(task)

    columns = SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"), Bar(24), Share(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True, highlight=False)) as bars:
        shown = _Steps(bars)
        yield shown
        shown.end()


class _Steps:
    """Each step is a task of `bars`. It ends when the next step begins. Without bars, each step is a line of text."""

    def __init__(self, bars: "Progress | None") -> None:
        self.bars, self.step = bars, ""
        self.task: TaskID | None = None

    def __call__(self, step: str, done: float | None = None, of: float | None = None) -> None:
        if step != self.step:
            self.end()
            self.step = step
            if self.bars:
                self.task = self.bars.add_task(step, total=None)
            else:
                click.echo(step, err=True)
        if self.bars and self.task is not None:
            self.bars.update(self.task, completed=done, total=of)

    def end(self) -> None:
        if self.bars and self.task is not None:
            done = self.bars.tasks[self.bars.task_ids.index(self.task)].completed or 1
            self.bars.update(self.task, total=done, completed=done)
