"""The end of a run: how long it took, what was skipped and what to install. With --times, seconds by folder."""

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import PurePath
from typing import Any

import psutil
import pytest

CPU = pytest.StashKey[float]()
STARTED = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", action="store_true", help="print seconds of CPU and of waiting by folder and by file")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--times"):
        for line in times(report for reports in terminalreporter.stats.values() for report in reports):
            terminalreporter.write_line(line)
    seconds = round(time.monotonic() - STARTED)
    terminalreporter.write_line(f"took {seconds // 60}:{seconds % 60:02} minutes")
    reasons = (report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    if skipped := Counter(reason.removeprefix("Skipped: ") for reason in reasons):
        terminalreporter.write_line(skips(skipped))


def skips(reasons: Counter[str]) -> str:
    """All reasons of the form "apt install PACKAGE" become one command."""
    packages = {name for reason in reasons for name in reason.partition("apt install ")[2].split()}
    others = {reason: count for reason, count in reasons.items() if "apt install " not in reason}
    said = [f"{count}: {reason}" for reason, count in others.items()]
    if packages:
        command = f"apt install {' '.join(sorted(packages))}"
        said.insert(0, f"{reasons.total() - sum(others.values())} need `{command}`")
    return f"skipped {reasons.total()} tests: {'; '.join(said)}"


# ---------------------------------------------------------------------------------------------- where the time goes


def cpu_seconds() -> float:
    """CPU time of this process, of its servers and of its other children, those that have ended included."""
    me, spent = psutil.Process(), 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            spent += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return spent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    if item.config.getoption("--times"):
        item.stash[CPU] = cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Gives the report of each phase its CPU time. xdist hands properties on to the main process."""
    report = yield
    if CPU in item.stash:
        before, item.stash[CPU] = item.stash[CPU], cpu_seconds()
        report.user_properties = [("cpu", max(0.0, item.stash[CPU] - before))]
    return report


def times(reports: Iterator[Any]) -> Iterator[str]:
    """A table: tests, seconds of CPU and of waiting, of each folder and then of the 40 longest files."""
    folders: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    files: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for report in reports:
        if properties := dict(getattr(report, "user_properties", ())):
            file = report.nodeid.split("::")[0]
            for row in folders[str(PurePath(file).parent)], files[file], folders["all"]:
                row[0] += report.when == "call"
                row[1] += properties["cpu"]
                row[2] += max(0.0, report.duration - properties["cpu"])
    longest = sorted(files.items(), key=lambda file: -sum(file[1][1:]))[:40]
    yield f"{'tests':>6} {'CPU':>7} {'waiting':>7}  seconds"
    for name, (tests, cpu, waiting) in [*sorted(folders.items()), *longest]:
        yield f"{tests:6.0f} {cpu:7.1f} {waiting:7.1f}  {name}"
