"""Whether a page changed, and by how much: hashes and sketches of its content.

Divergence is what bound-based scheduling goes by (Olston & Pandey, Recrawl Scheduling Based on Information Longevity,
2008): of all short sequences of words (shingles) in two versions of a page, the share that only one of them has. A
sketch of eight numbers estimates it by min-hash (Broder, On the Resemblance and Containment of Documents, 1997): each
is the least of a hash over all shingles, and two sketches have it in common as often as the versions have a shingle.
The estimate strays from the divergence d by √(d(1 − d)/8), .18 at most.
"""

import hashlib
import re
from collections.abc import Collection
from struct import Struct

import xxhash

# Sketches are compared over years: neither these nor the hashes below can be changed without forgetting all of them.
VALUES = 8
SHINGLE = 4  # words
NO_WORDS = 2**31 - 1  # every value of the sketch of a text without words

_WORD = re.compile(r"\w+")
_EIGHT_NUMBERS = Struct(">8I").unpack


def sha1(content: bytes) -> str:
    """40 hexadecimal digits: what other crawlers store, for those who compare with them."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def xxh3(content: bytes) -> str:
    """32 hexadecimal digits, many times faster. Not for content whose author gains by a collision."""
    return xxhash.xxh3_128_hexdigest(content)


def sketch(text: str) -> list[int]:
    """Eight numbers of 0 … 2^31 − 1. Case, punctuation and blanks do not matter; markup is for the caller to remove.

    A text shorter than a shingle is one. Where words are not set apart, as in Chinese, a word is what stands between
    two punctuation marks. A thousand words take a millisecond.
    """
    words = _WORD.findall(text.casefold())
    length = min(SHINGLE, len(words))
    shingles = {" ".join(words[i : i + length]).encode() for i in range(len(words) - length + 1)} - {b""}
    if not shingles:
        return [NO_WORDS] * VALUES
    hashes = (xxhash.xxh3_128_digest(s) + xxhash.xxh3_128_digest(s, seed=1) for s in shingles)
    return [least >> 1 for least in map(min, zip(*map(_EIGHT_NUMBERS, hashes), strict=True))]


def distance(one: Collection[int], other: Collection[int]) -> float:
    """The estimated divergence of two sketches: what share of their values differs."""
    for name, given in (("one", one), ("other", other)):
        if len(given) != VALUES:
            raise ValueError(f"{name} must have {VALUES} values, got {len(given)}")
    return sum(a != b for a, b in zip(one, other, strict=True)) / VALUES
