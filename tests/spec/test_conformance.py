"""docs/conformance.md is true: `python -m tests.docs.tables` writes it anew."""

import pytest

from tests.draw import TALLY
from tests.spec.collected import Collected, of_items
from tests.spec.conformance import CONFORMANCE_PAGE, cases_part, conformance_page, introduction, rules_part
from tests.spec.ledgers import carried, cases
from tests.spec.proofs import FILES, PROOFS


def named_all(config: pytest.Config, collected: Collected) -> bool:
    """Whether this run was asked for all that the page names, though what is drawn is tried alone."""
    chosen = config.option.keyword or config.option.markexpr or config.option.deselect or any("::" in word for word in config.args)
    return not chosen and {name.partition("::")[0] for name in collected} >= FILES


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> Collected:
    """What pytest has collected, with the long tests that were not drawn."""
    found = of_items(request.session.items)
    for nodeid in TALLY.long:
        file, *_, function = nodeid.partition("[")[0].removeprefix("tests/").split("::")
        found.setdefault(f"{file}::{function}", set())
    return found


@pytest.mark.long
def test_the_page_is_what_the_ledgers_and_the_collected_tests_say(request: pytest.FixtureRequest, collected: Collected) -> None:
    kept = CONFORMANCE_PAGE.read_text()
    if named_all(request.config, collected) and not request.config.option.draw:
        assert kept == conformance_page(collected)
    else:  # of the operations only the whole run knows
        assert all(part in kept for part in (introduction(), rules_part(), cases_part()))


def test_every_test_that_the_page_names_is_collected(request: pytest.FixtureRequest, collected: Collected) -> None:
    if not named_all(request.config, collected):
        return
    listed = [*carried().values(), *(case.tests for case in cases())]
    wanted = {test for tests in listed for test in tests} | {proof.test for proof in PROOFS}
    files = {name.partition("::")[0] for name in collected}
    assert sorted(test for test in wanted - set(collected) if test.partition("::")[0] in files) == []
