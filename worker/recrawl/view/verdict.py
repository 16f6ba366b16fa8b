"""Asks the rules for trouble: `recrawl status` gets one verdict, `recrawl doctor` a line for each rule.

Pure: no database and no clock.
"""

from dataclasses import replace

from recrawl.view.facts import Facts
from recrawl.view.figures import Figures
from recrawl.view.rule import Diagnosis, Fix
from recrawl.view.rules import RULES

MOST_FIXES = 3


def verdict(figures: Figures) -> Diagnosis:
    """The first finding, with its fix and the fixes of later findings.

    If something is wrong, later findings of the level `ok` give no fixes.
    """
    facts = Facts(figures)
    findings = ((rule, finding) for rule in RULES if rule.in_status and (finding := rule.on(facts)))
    rule, first = next(findings)  # the generator goes on with the later rules below
    fixes = list(first.fixes)
    if not rule.is_alone:
        fixes += [fix for _, later in findings if first.level == "ok" or later.level != "ok" for fix in later.fixes]
    by_topic: dict[str, Fix] = {}
    for fix in fixes:
        by_topic.setdefault(fix.topic, fix)
    return replace(first, fixes=tuple(by_topic.values())[:MOST_FIXES])


def checks(facts: Facts) -> list[Diagnosis]:
    rules = [rule for rule in RULES if rule.ok_line]
    if facts.figures.database != "same":
        rules = [rule for rule in rules if rule.code == "database"]  # the others need the tables
    return [rule.on(facts) or Diagnosis(rule.code, "ok", rule.ok_line) for rule in rules]
