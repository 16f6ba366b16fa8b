"""The form of a rule for trouble. The list of rules is in `rules.py`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from recrawl.view.facts import Facts

Level = Literal["ok", "unseen", "warn", "trouble"]  # unseen = this login may not see it
MARKS = {"ok": "✓", "warn": "▲", "trouble": "✕", "unseen": "?"}


@dataclass(frozen=True)
class Fix:
    """Something to do. Of several fixes with one topic a verdict shows the first."""

    topic: str
    says: str
    do: str  # SQL or a command, to be copied


@dataclass(frozen=True)
class Diagnosis:
    """The result of a rule for one crawl."""

    code: str
    level: Level
    headline: str
    detail: str = ""
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True)
class Details:
    """The part of a diagnosis that depends on the crawl. The rest comes from the rule."""

    headline: str
    detail: str = ""
    level: Level | None = None
    fix: Fix | None = None
    do: str | None = None  # a command that names a job, host or table of this crawl; it replaces `do` of the fix


@dataclass(frozen=True)
class Alert:
    """How Prometheus finds the same trouble."""

    says: str
    expr: str
    lasts: str  # how long the expression must hold, such as 15m
    do: str | None = None  # a command with a label of the alert; it replaces `do` of the fix


@dataclass(frozen=True)
class Rule:
    code: str
    level: Level
    find: Callable[[Facts], Details | None] | None  # None = only Prometheus can find it
    means: str = ""  # what the trouble is and does, in words that are true of every crawl
    fix: Fix | None = None
    ok_line: str = ""  # doctor's line if nothing is found; empty = doctor does not list the rule
    alert: Alert | None = None
    in_status: bool = True
    is_alone: bool = False  # a verdict then shows no fixes of other rules

    def on(self, facts: Facts) -> Diagnosis | None:
        found = self.find(facts) if self.find else None
        if found is None:
            return None
        level = found.level or self.level
        fix = found.fix or self.fix
        if level in ("ok", "unseen") and level != self.level:  # no trouble, so `means` and `fix` do not apply
            return Diagnosis(self.code, level, found.headline, found.detail)
        detail = " ".join(part for part in (found.detail, self.means) if part)
        fixes = (replace(fix, do=found.do or fix.do),) if fix else ()
        return Diagnosis(self.code, level, found.headline, detail, fixes)
