"""Each abuse case of the threat model has tests, and they are there."""

import pytest

from tests.spec.ledgers import abuse_promises, cases, functions

CASES = {case.number: case for case in cases()}


def test_every_case_of_the_threat_model_is_there() -> None:
    assert list(CASES) == list(range(1, 46))


@pytest.mark.parametrize("number", CASES)
def test_the_tests_of_an_abuse_case_are_there(number: int) -> None:
    for name in CASES[number].tests:
        file, _, test = name.partition("::")
        assert test in functions(file), name


@pytest.mark.long
def test_the_tests_of_every_promise_are_there() -> None:
    named = [(promise.promise, name) for promise in abuse_promises() for name in promise.tests or ("none::none",)]
    assert [pair for pair in named if pair[1].partition("::")[2] not in functions(pair[1].partition("::")[0])] == []
