"""A few examples of each state machine; `python3 ./run fuzz machines` plays many."""

import pytest

from tests.databases import NO_POSTGRES
from tests.fuzz.machines import MACHINES, OWN, play
from tests.harness.machine_runner import postgres

FEW, FEWER = 4, 1


@pytest.mark.long
@pytest.mark.parametrize("name", OWN)
def test_the_machine_does_as_its_model(name: str) -> None:
    if name.endswith("postgresql") and postgres() is None:
        pytest.skip(NO_POSTGRES)
    broken = play(name, examples=FEWER if name.endswith("postgresql") else FEW, seed=1, steps=30)
    assert broken is None, broken


def test_every_machine_is_known_to_the_command() -> None:
    assert set(OWN) < set(MACHINES)
