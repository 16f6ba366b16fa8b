"""Hashes and sketches of the content of a page: they say whether it changed, and by how much.

A shingle is a sequence of four words. The divergence of two versions of a page is the share of their shingles that only
one version has (Olston & Pandey, Recrawl Scheduling Based on Information Longevity, 2008). A sketch estimates it with
eight numbers, by min-hash (Broder, On the Resemblance and Containment of Documents, 1997). Each number is the least
hash of all shingles, by a hash function of its own. It is equal in two versions with the probability 1 − divergence.
The standard error of the estimate of a divergence d is √(d(1 − d)/8), at most .18.
"""

import re
from collections.abc import Collection
from struct import Struct

import xxhash

# Sketches are compared over years. If these numbers or the hashes below change, all stored sketches are useless.
VALUES = 8
SHINGLE = 4  # words
NO_WORDS = 2**31 - 1  # each value of the sketch of a text without words

_WORD = re.compile(r"\w+")
_EIGHT_NUMBERS = Struct(">8I").unpack


def xxh3(content: bytes) -> str:
    """32 hexadecimal digits, many times faster than SHA-1. Not safe if an author of content wants a collision."""
    return xxhash.xxh3_128_hexdigest(content)


def sketch(text: str) -> list[int]:
    """Eight numbers from 0 to 2^31 − 1. Case, punctuation and blanks do not matter. The caller removes markup.

    A text that is shorter than a shingle is one shingle. In a language without blanks between words, such as Chinese,
    the text between two punctuation marks is one word. A thousand words take a millisecond.
    """
    words = _WORD.findall(text.casefold())
    length = min(SHINGLE, len(words))
    shingles = {" ".join(words[i : i + length]).encode() for i in range(len(words) - length + 1)} - {b""}
    if not shingles:
        return [NO_WORDS] * VALUES
    hashes = (xxhash.xxh3_128_digest(s) + xxhash.xxh3_128_digest(s, seed=1) for s in shingles)
    return [least >> 1 for least in map(min, zip(*map(_EIGHT_NUMBERS, hashes), strict=True))]


def distance(one: Collection[int], other: Collection[int]) -> float:
    """The estimated divergence of two versions: the share of the values of their sketches that differ."""
    for name, given in (("one", one), ("other", other)):
        if len(given) != VALUES:
            raise ValueError(f"{name} must have {VALUES} values, got {len(given)}")
    return sum(a != b for a, b in zip(one, other, strict=True)) / VALUES
