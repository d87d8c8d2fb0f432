"""docs/conformance.md is true: `python -m tests.docs.tables` writes it anew."""

import pytest

from tests.spec.collected import Collected, of_items
from tests.spec.conformance import CONFORMANCE_PAGE, cases_part, conformance_page, introduction, rules_part
from tests.spec.ledgers import carried, cases
from tests.spec.proofs import FILES, PROOFS


def whole(config: pytest.Config, collected: Collected) -> bool:
    """Whether nothing was left out of this run that the page names: what is drawn asks each test of a share of the operations alone."""
    chosen = config.option.keyword or config.option.markexpr or config.option.deselect or any("::" in word for word in config.args)
    chosen = chosen or config.option.draw
    return not chosen and {name.partition("::")[0] for name in collected} >= FILES


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> Collected:
    return of_items(request.session.items)


def test_the_page_is_what_the_ledgers_and_the_collected_tests_say(request: pytest.FixtureRequest, collected: Collected) -> None:
    kept = CONFORMANCE_PAGE.read_text()
    if whole(request.config, collected):
        assert kept == conformance_page(collected)
    else:  # of the operations only the whole run knows
        assert all(part in kept for part in (introduction(), rules_part(), cases_part()))


def test_every_test_that_the_page_names_is_collected(request: pytest.FixtureRequest, collected: Collected) -> None:
    if not whole(request.config, collected):
        return
    listed = [*carried().values(), *(case.tests for case in cases())]
    wanted = {test for tests in listed for test in tests} | {proof.test for proof in PROOFS}
    files = {name.partition("::")[0] for name in collected}
    assert sorted(test for test in wanted - set(collected) if test.partition("::")[0] in files) == []
