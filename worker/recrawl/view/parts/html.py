"""Markup put together so that nothing gets into it unescaped: text is escaped unless it is Html already."""

from collections.abc import Iterable
from html import escape
from re import sub
from typing import Self

VOID = {"input", "meta"}


class Html(str):
    """Markup that was made by el(), or is written in this package."""

    __slots__ = ()

    @classmethod
    def of(cls, *children: object) -> Self:
        """Text is escaped, None is nothing, an iterable is all that is in it."""
        return cls("".join(_markup(child) for child in children))


def _markup(child: object) -> str:
    if isinstance(child, Html):
        return child
    if child is None:
        return ""
    if isinstance(child, Iterable) and not isinstance(child, str):
        return Html.of(*child)
    return escape(str(child))


def el(tag: str, *children: object, **attributes: object) -> Html:
    """An element. class_ is class, data_x is data-x; an attribute that is None or False is left out."""
    given = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{Html.of(*children)}</{tag}>")


def in_markup(sentence: str) -> Html:
    """A sentence, in which **this** stands out. A number and its unit stay on one line."""
    together = sub(r"(?<=\d) (?=%|(?:[kMG]|s|min|h|days)\b)", "\N{NO-BREAK SPACE}", sentence)
    return Html(sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(together)))


def table(headings: Iterable[tuple[str, str | None]], rows: Iterable[Html], **attributes: object) -> Html:
    """Headings have a text and a class."""
    head = el("tr", (el("th", words, scope="col", class_=c) for words, c in headings))
    return el("table", el("thead", head), el("tbody", rows), **attributes)


def row(heading: object, *cells: tuple[object, str | None], **attributes: object) -> Html:
    """A row of a table. Cells have a content and a class."""
    rest = (el("td", content, class_=c) for content, c in cells)
    return el("tr", el("th", heading, scope="row"), rest, **attributes)
