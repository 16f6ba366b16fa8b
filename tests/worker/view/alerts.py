"""Writes docs/monitoring/prometheus-alerts.yml from the rules: `make golden` runs it. Pure."""

from textwrap import wrap

from recrawl.view.rule import Alert, Rule
from recrawl.view.rules import RULES

HEAD = """\
# Alert rules for a crawl whose worker Prometheus scrapes as the job "recrawl". docs/watch.md says how.
# `make golden` writes this file from the rules in worker/recrawl/view/rules.py: edit them there.
#
# severity: trouble = the crawl has stopped or soon will. warn = it runs, but look at it within the day.
groups:
  - name: recrawl
    rules:
"""


def written() -> str:
    return HEAD + "\n".join(_alert(rule, rule.alert) for rule in RULES if rule.alert)


def name(rule: Rule) -> str:
    """RecrawlCrawlersSlow for crawlers_slow."""
    return "Recrawl" + rule.code.title().replace("_", "")


def _alert(rule: Rule, alert: Alert) -> str:
    assert rule.fix
    text = {
        "summary": f"{{{{ $labels.instance }}}}: {alert.says}",
        **({"description": rule.means} if rule.means else {}),
        "fix": f"{rule.fix.says}: {alert.do or rule.fix.do}",
    }
    return (
        f"      - alert: {name(rule)}\n"
        f"        expr: {_folded(alert.expr, 10)}\n"
        f"        for: {alert.lasts}\n"
        f"        labels: {{severity: {rule.level}}}\n"
        "        annotations:\n" + "".join(f"          {key}: {_folded(says, 12)}\n" for key, says in text.items())
    )


def _folded(text: str, indent: int) -> str:
    """A YAML text that needs no quotes. The line breaks become spaces."""
    lines = wrap(text, 110 - indent, break_long_words=False, break_on_hyphens=False)
    return ">-\n" + "\n".join(" " * indent + line for line in lines)
