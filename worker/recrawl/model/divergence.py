"""Whether a page changed, and by how much: hashes and sketches of its content.

Divergence is what Olston & Pandey (Recrawl Scheduling Based on Information Longevity) schedule by: of all short
sequences of words (shingles) in two versions of a page, the share that only one of them has. A sketch of eight numbers
estimates it (Broder's min-hash): each is the least of a hash over all shingles, and two sketches have it in common as
often as the versions have a shingle. The estimate strays from the divergence d by √(d(1 − d)/8), .18 at most.
"""

import hashlib
import re

import numpy as np
import xxhash
from numpy.typing import ArrayLike, NDArray

Sketch = NDArray[np.int32]
Hashes = NDArray[np.uint64]

# Sketches are compared over years: neither these nor the hashes below can be changed without forgetting all of them.
VALUES = 8
SHINGLE = 4  # words
NO_WORDS = 2**31 - 1  # every value of the sketch of a text without words

_WORD = re.compile(r"\w+")
_STREAMS = np.uint64(0x9E3779B97F4A7C15) * np.arange(1, VALUES + 1, dtype=np.uint64)


def sha1(content: bytes) -> str:
    """40 hexadecimal digits: what other crawlers store, for those who compare with them."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def xxh3(content: bytes) -> str:
    """32 hexadecimal digits, many times faster. Not for content whose author gains by a collision."""
    return xxhash.xxh3_128_hexdigest(content)


def sketch(text: str) -> Sketch:
    """Eight numbers of 0 … 2^31 − 1. Case, punctuation and blanks do not matter; markup is for the caller to remove.

    A text shorter than a shingle is one. Where words are not set apart, as in Chinese, a word is what stands between
    two punctuation marks.
    """
    words = np.array([xxhash.xxh3_64_intdigest(word.encode()) for word in _WORD.findall(text.casefold())], np.uint64)
    if len(words) == 0:
        return np.full(VALUES, NO_WORDS, np.int32)
    length = min(SHINGLE, len(words))
    shingles = np.zeros(len(words) - length + 1, np.uint64)
    for i in range(length):
        shingles = _mixed(shingles ^ words[i : i + len(shingles)])
    least = [_mixed(shingles + stream).min() for stream in _STREAMS]
    return (np.array(least) >> np.uint64(33)).astype(np.int32)


def distance(one: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    """The estimated divergence of two sketches, or of two tables of them row by row: what share of values differs."""
    one, other = np.asarray(one), np.asarray(other)
    for name, given in (("one", one), ("other", other)):
        if given.shape[-1:] != (VALUES,):
            raise ValueError(
                f"{name} must have {VALUES} values a sketch, got {given.shape[-1] if given.ndim else given}"
            )
    return np.asarray((one != other).mean(axis=-1))


def _mixed(hashes: Hashes) -> Hashes:
    """The finalizer of SplitMix64: every bit of the result depends on every bit given."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))
