"""The files that `make mutants` changes and the tests that it runs exist."""

import pytest

import mutants


@pytest.mark.parametrize(("folder", "suffix"), [("sql", ".sql"), ("worker/recrawl", ".py")])
def test_every_mutant_has_tests_that_can_see_it(folder: str, suffix: str) -> None:
    found = mutants.mutants(folder, suffix)
    assert {mutant.kind for mutant in found} >= {"comparison", "constant", "condition", "sign", "statement"}
    tests = {test for path in {mutant.path for mutant in found} for test in mutants.tests_of(path)}
    assert [test for test in sorted(tests) if not (mutants.ROOT / test).exists()] == []


def test_no_place_of_the_list_is_gone() -> None:
    assert [start for start in mutants.TESTS if not (mutants.ROOT / start).exists()] == []
