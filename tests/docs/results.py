"""The results that documents show: a block of `text` right below a block of `sql` or `sh` is what that block answers.

The block's last statement gives the answer. A result may show fewer columns than `SELECT *` answers. Times may differ,
and so may all numbers in the output of `status`, `explain` and `look`, which depend on the time. `make golden` writes
the results that differ in anything else.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FENCED = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
AS_OF_NOW = ("recrawl status", "recrawl explain", "recrawl look")
TIME = re.compile(r"\d{4}-\d\d-\d\d [\d:.]+[+-]\d\d")


@dataclass(frozen=True)
class Step:
    """A block of code, and the result that the document shows below it."""

    language: str
    text: str
    answer: str | None
    place: tuple[int, int]  # of the answer in the document

    @property
    def statements(self) -> list[str]:
        """A semicolon at the end of a line, maybe with a comment behind it, ends a statement."""
        parts = re.split(r";[ \t]*(?:--[^\n]*)?$", self.text, flags=re.MULTILINE)
        return [part.strip() for part in parts if re.sub(r"--[^\n]*", "", part).strip()]

    @property
    def last_statement(self) -> str:
        """With the columns that the document shows in the place of `*`."""
        shown = (self.answer or "").partition("\n")[0]
        columns = ", ".join(f'"{column.strip()}"' for column in shown.split("|"))
        return re.sub(r"^(\s*SELECT) \* FROM", rf"\1 {columns} FROM", self.statements[-1])

    def agrees(self, found: str) -> bool:
        return self._comparable(found) == self._comparable(self.answer or "") and self._is_aligned

    @property
    def _is_aligned(self) -> bool:
        """Whether the columns of a table stand below each other, as psql writes them."""
        head, rule, *rows = [*(self.answer or "").splitlines(), "", ""]
        if self.language != "sql" or not rule or set(rule) - {"-", "+"}:
            return True
        borders = [place for place, sign in enumerate(rule) if sign == "+"]
        return len(head) <= len(rule) and all(
            all(row[place : place + 1] == "|" for place in borders)
            for row in (head, *rows)
            if row.count("|") == len(borders)
        )

    def _comparable(self, answer: str) -> list[str]:
        """Without what depends on the time and, in tables, on the widths that times give their columns."""
        if self.language == "sh":
            if self.text.startswith(AS_OF_NOW):
                answer = re.sub(r"\b(a moment|[\d.]+ (s|min|seconds?|minutes?)) ago", "lately", answer)
                answer = re.sub(r"\btomorrow (?=\d)", "at ", answer)  # shortly before midnight
                answer = re.sub(r"\d[\d.,:]*", "0", answer)
            return answer.split()
        rows = [TIME.sub("(a time)", line) for line in answer.splitlines() if line.strip()]
        return ["|".join(cell.strip("- ") for cell in re.split(r"[|+]", row)) for row in rows]


def steps(document: str) -> list[Step]:
    found = list(FENCED.finditer(document))
    steps = []
    for block, below in zip(found, [*found[1:], None], strict=True):
        language, text = block[2].strip(), block[3]
        is_answer = below and below[2].strip() == "text" and not document[block.end() : below.start()].strip()
        if language in ("sql", "sh", "python"):
            answer, place = (below[3], below.span(3)) if below and is_answer else (None, (0, 0))
            steps.append(Step(language, text, answer, place))
    return steps


def written(document: Path, step: Step, found: str, after: str = "") -> None:
    """Writes what was found into the document. `after`: the text behind which the step's place counts."""
    text = document.read_text()
    begin, end = (text.index(after) + len(after) + place for place in step.place)
    answer = "".join(f"{line.rstrip()}\n" for line in found.strip("\n").splitlines())
    document.write_text(text[:begin] + answer + text[end:])
