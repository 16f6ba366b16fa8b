"""Cleans a URL before SQL sees it: WHATWG parsing, as a browser does with an address.

SQL alone decides whether a URL is valid, which page it names and to which host it belongs. So nothing is rejected here:
a URL that cannot be parsed goes on to SQL, which says what is wrong with it.
"""

import re

from ada_url import normalize_url

# How Python reads bytes that are not UTF-8 (errors="surrogateescape").
_RAW_BYTE = re.compile("[\udc80-\udcff]")

# Text and jsonb in Postgres cannot hold these.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

# WHATWG trims C0 controls and spaces. People also paste other blanks and byte order marks. All are trimmed in one step,
# because one kind may be behind another.
_EDGES = "".join(c for c in map(chr, range(0x3001)) if c <= " " or c.isspace()) + "\ufeff"


def clean(url: str) -> str:
    """The URL as a browser would request it, without its fragment. If it cannot be parsed, it is only trimmed and made
    storable.

    Never raises. Idempotent. The query keeps its order, because another order can be another page.
    """
    url = url.strip(_EDGES)
    if not url.isascii():
        url = _RAW_BYTE.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", url)  # for example Latin-1 from an old page
    url = storable(url)
    try:
        # '#' always starts the fragment, so the fragment can be cut off before parsing. replace_url(url, hash="") would
        # take half a microsecond more.
        return normalize_url(url.partition("#")[0])
    except ValueError:
        return url


def as_stored(what: str) -> str:
    """A URL, a page_id or a host that a person typed. A host that is not ASCII gets its spelling in ASCII."""
    if what.isascii():
        return what
    return clean(what) if "://" in what else clean(f"http://{what}").removeprefix("http://").removesuffix("/")


def storable(text: str) -> str:
    """The text with U+FFFD in place of what Postgres cannot hold: NUL and lone surrogates."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub("\ufffd", text)


_NUMBER = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_HOST = re.compile(
    rf"({_NUMBER}\.){{3}}{_NUMBER}|(?!.{{254}})({_LABEL}\.)*(?!([0-9]+|0x[0-9a-f]*)$){_LABEL}", re.ASCII | re.IGNORECASE
)


def host_of_key(key: object) -> str | None:
    """The key of a queue of URLFrontier, if it can be a host: an IPv4 address, or a name whose last part is
    no number."""
    return key if isinstance(key, str) and _HOST.fullmatch(key) else None
