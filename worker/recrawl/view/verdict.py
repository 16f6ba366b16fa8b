"""Asks the rules for trouble: `recrawl status` gets one verdict, `recrawl doctor` a line for each rule.

Pure: no database and no clock.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from recrawl.view.facts import Facts
from recrawl.view.figures import Figures
from recrawl.view.rule import Finding, Fix
from recrawl.view.rules import FEW, RULES, unused_budget
from recrawl.words import count, literal

MOST_FIXES = 3
WITHOUT_TABLES = ("server_version", "database")  # the rules that can be asked before `recrawl migrate`


def verdict(figures: Figures) -> Finding:
    """The first finding, with its fix and the fixes of later findings."""
    facts = Facts(figures)
    findings = ((rule, finding) for rule in RULES if rule.in_status and (finding := rule.on(facts)))
    rule, first = next(findings)
    fixes = list(first.fixes)
    if not rule.is_alone:
        fixes += [fix for _, later in findings if later.level != "ok" for fix in later.fixes]
        fixes += hints(figures) if first.level == "ok" else ()
    by_topic: dict[str, Fix] = {}
    for fix in fixes:
        by_topic.setdefault(fix.topic, fix)
    return replace(first, fixes=tuple(by_topic.values())[:MOST_FIXES])


def checks(facts: Facts) -> list[Finding]:
    rules = [rule for rule in RULES if rule.well]
    if facts.figures.database != "same":
        rules = [rule for rule in rules if rule.code in WITHOUT_TABLES]
    return [rule.on(facts) or Finding(rule.code, "ok", rule.well) for rule in rules]


def hints(figures: Figures) -> Iterator[Fix]:
    """Fixes that help although nothing is wrong."""
    for host in figures.late_hosts:
        if host.waits_for == "block" and host.due >= FEW and (host.blocked_reason or "").endswith(("429", "503")):
            gap = 2 * (host.gap or timedelta(seconds=1))
            yield Fix(
                "host",
                f"{host.host} is blocked: {host.blocked_reason}. {count(host.due)} of its pages are due. "
                "A longer gap may help",
                f"SELECT recrawl.set_host({literal(host.host)}, gap => '{gap.total_seconds():g} s');",
            )
            break
    if unused := unused_budget(figures):
        yield Fix(
            "budget", f"{count(unused)} fetches a day are not used. See what a lower budget costs", "recrawl plan"
        )
