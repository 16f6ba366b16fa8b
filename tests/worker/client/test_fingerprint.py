"""A sketch tells how much of a page changed, without keeping the page."""

import random

import numpy as np
import pytest

from recrawl.client.fingerprint import NO_WORDS, distance, sketch, xxh3


def story(seed: int, words: int = 300) -> list[str]:
    generator = random.Random(seed)
    return [f"word{generator.randrange(10**6)}" for _ in range(words)]


def shingles(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + 4]) for i in range(len(words) - 3)}


def jaccard(one: list[str], other: list[str]) -> float:
    return 1 - len(shingles(one) & shingles(other)) / len(shingles(one) | shingles(other))


def test_the_same_text_does_not_diverge() -> None:
    assert distance(sketch(" ".join(story(1))), sketch(" ".join(story(1)))) == 0


def test_different_texts_diverge_completely() -> None:
    assert distance(sketch(" ".join(story(1))), sketch(" ".join(story(2)))) == 1


def test_case_punctuation_and_blanks_do_not_matter() -> None:
    assert distance(sketch("The cat, sat: on the Mat."), sketch(" the  cat sat\non the mat")) == 0


def test_the_order_of_words_matters() -> None:
    words = story(1)
    assert distance(sketch(" ".join(words)), sketch(" ".join(reversed(words)))) == 1


@pytest.mark.parametrize("replaced", [15, 75, 200])
def test_on_average_the_distance_is_the_divergence(replaced: int) -> None:
    estimates, truths = [], []
    for seed in range(400):
        before = story(seed)
        after = before[replaced:] + story(-seed - 1, replaced)
        estimates.append(distance(sketch(" ".join(before)), sketch(" ".join(after))))
        truths.append(jaccard(before, after))
    true = float(np.mean(truths))
    standard_error = np.sqrt(true * (1 - true) / (8 * len(estimates)))
    assert np.mean(estimates) == pytest.approx(true, abs=4 * standard_error)
    assert np.std(estimates) == pytest.approx(np.sqrt(true * (1 - true) / 8), rel=0.15), "the values are independent"


def test_short_texts_have_sketches() -> None:
    assert distance(sketch("one"), sketch("one")) == 0
    assert distance(sketch("one"), sketch("two")) == 1
    assert distance(sketch("one two three"), sketch("one two")) == 1


def test_a_text_without_words_has_a_sketch() -> None:
    assert sketch("") == sketch(" … !\ud800") == [NO_WORDS] * 8
    assert distance(sketch(""), sketch("...")) == 0
    assert distance(sketch(""), sketch("words")) == 1


def test_a_sketch_fits_an_integer_array_of_sql() -> None:
    values = np.array([sketch(" ".join(story(seed))) for seed in range(200)])
    assert values.shape == (200, 8)
    assert values.min() >= 0 and values.max() < 2**31 and len(np.unique(values)) > 1590, (
        "they hardly ever meet by chance"
    )


def test_the_distance_is_the_share_of_values_that_differ() -> None:
    one = list(range(8))
    assert [distance(one, [-1] * n + one[n:]) for n in (0, 2, 8)] == [0, 0.25, 1]


def test_a_sketch_is_the_same_in_every_process_and_every_version() -> None:
    """Sketches are stored, and compared over years."""
    assert sketch("The quick brown fox jumps over the lazy dog") == [
        337147107, 349079548, 451669538, 223071716, 48084887, 195768596, 256162444, 103704804
    ]  # fmt: skip
    assert sketch("") == [2147483647] * 8


@pytest.mark.parametrize("wrong", [[1, 2, 3], []])
def test_what_is_no_sketch_is_refused(wrong: list[int]) -> None:
    with pytest.raises(ValueError, match="other must have 8 values"):
        distance(range(8), wrong)


def test_the_content_hash_is_the_published_one() -> None:
    assert xxh3(b"") == "99aa06d3014798d86001c324468d497f", "the test vector of XXH3 with 128 bits"
    assert xxh3(b"abc") != xxh3(b"abd")
