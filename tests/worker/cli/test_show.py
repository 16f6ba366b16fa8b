"""Tables, at every width."""

from datetime import datetime

import pytest

from recrawl.cli import show

ROWS = [
    {"policy": "opt_polite", "fresh": "97.4 %", "changes seen a day": "1,012,345", "unused a day": "0"},
    {"policy": "best_first", "fresh": "3.8 %", "changes seen a day": "never seen", "unused a day": "1,840"},
]


def test_a_time_of_another_day_has_its_date() -> None:
    assert show.readable(datetime(2024, 2, 29, 12, 30, 5)) == "2024-02-29 12:30:05"


@pytest.mark.parametrize("width", [*range(20, 70), 200])
def test_no_word_is_cut_and_no_line_longer_than_the_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    show.table(ROWS)
    said = capsys.readouterr().out
    words = {word for row in ROWS for cell in row.items() for text in cell for word in text.split()}
    assert words <= set(said.replace("|", " ").split())
    assert "+" not in said or max(map(len, said.splitlines())) <= width, "but where there is a line a cell"
