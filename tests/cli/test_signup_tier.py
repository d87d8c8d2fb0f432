"""Which tier organisations begin on that sign up by themselves."""

from pathlib import Path

import pytest

from tests.cli.reseller import printed, refused
from tests.harness.processes import running
from tests.people import Person, console_of


@pytest.mark.long
def test_organisations_that_sign_up_begin_on_the_tier_of_the_setting(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, {"SERVICE_SIGNUP_TIER": "pro"}) as server:
        organisation = Person(server, console_of(data), "ada@fjord.example").sign_up("Fjord Mobile")
    assert f"{organisation}\tpro\tFjord Mobile\tnot connected\n" in printed("org", "list", "--data", data, cwd=tmp_path)


def test_a_tier_that_there_is_not_stops_the_start(tmp_path: Path) -> None:
    code, message = refused("serve", cwd=tmp_path, SERVICE_SIGNUP_TIER="gold")
    assert code == 2
    assert message.startswith("SERVICE_SIGNUP_TIER: ") and "'pro'" in message
