"""The arguments of Client and ThreadedClient, which share them."""

from collections.abc import Callable
from typing import Final, Required, TypedDict, cast

from recrawl.client.page import Page

Hook = Callable[[Page, str, str | None], object]  # the page, its outcome, and why recrawl did not accept its report


class Options(TypedDict, total=False):
    user_agent: Required[str]  # the User-Agent header; robots.txt knows the crawler by it
    concurrency: int  # the most visits at the same time. Extra requests may make it twice as many
    robots: bool  # whether the client obeys robots.txt
    sitemaps: bool  # whether it adds the pages of the sitemaps that robots.txt lists
    ahead: float  # how many seconds before their slots the client gets pages from the database
    preparation: float  # how many seconds the first visits need before their requests. Later ones are measured.
    lease: float  # seconds after which the pages of a crawler that died come back
    per_host: int | None  # the most pages of one host in one answer of the database; None = no limit
    on_outcome: Hook | None  # called once for each leased page
    stop_on_signals: bool  # SIGTERM and SIGINT end the iteration; a second signal also ends the visits
    grace: float  # how many seconds visits, and a database that is away, get at the end


DEFAULTS: Final = {
    "concurrency": 100,
    "robots": True,
    "sitemaps": False,
    "ahead": 2.0,
    "preparation": 0.0,
    "lease": 600.0,
    "per_host": None,
    "on_outcome": None,
    "stop_on_signals": False,
    "grace": 30.0,
}


def complete(given: Options) -> Options:
    """The given arguments and the defaults of the others. Raises an error if one is unknown, missing or impossible."""
    if unknown := given.keys() - Options.__annotations__.keys():
        raise TypeError(f"the client has no argument {min(unknown)}")
    if "user_agent" not in given:
        raise TypeError("the client needs the argument user_agent")
    name = given["user_agent"]
    if not (isinstance(name, str) and name and name.isascii() and name.isprintable()):
        raise ValueError(f"user_agent must consist of printable ASCII characters, got {name!r}")
    options = cast(Options, {**DEFAULTS, **given})
    if options["concurrency"] < 1:
        raise ValueError(f"concurrency must be positive, got {options['concurrency']}")
    longest = 2 * options["ahead"]
    if not 0 <= options["preparation"] <= longest:
        raise ValueError(
            f"preparation must lie between 0 and twice ahead ({longest:g} s), got {options['preparation']}"
        )
    return options
