"""`reseller org connect` and `assign` against a charging system: what it does not know is refused, and nothing is changed then."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.network import network
from tests.cli.reseller import printed, refused, run_reseller
from transports.cli.org import account_list

pytestmark = pytest.mark.long

WAY_OUT = "nothing was changed; --unchecked does it without asking\n"
OWN = ("--own-token-stdin",)
NOBODY = {"SERVICE_OCS_URL": "http://127.0.0.1:1/v1", "SERVICE_OCS_TOKEN": "sandbox-7001-token"}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with network(tmp_path_factory.mktemp("network")) as (http, _):
        yield http


@pytest.fixture
def charging(http: httpx.Client) -> dict[str, str]:
    return {"SERVICE_OCS_URL": str(http.base_url).rstrip("/") + "/v1", "SERVICE_OCS_TOKEN": "sandbox-7001-token"}


@pytest.fixture(scope="module")
def acme(place: Path) -> str:
    return printed("org", "create", "Acme", cwd=place).strip()


@pytest.fixture
def organisation(place: Path, acme: str) -> str:
    """One that is connected to account 42."""
    printed("org", "connect", acme, "--account", "42", cwd=place)
    return acme


def connection(place: Path) -> str:
    return printed("org", "list", cwd=place).rstrip("\n").rpartition("\t")[2]


def test_an_account_is_connected_when_the_charging_system_knows_it(place: Path, organisation: str, charging: dict[str, str]) -> None:
    done = run_reseller("org", "connect", organisation, "--account", "8102", cwd=place, **charging)
    assert done == (0, f"{organisation} is connected to account 8102\n", "")
    assert connection(place) == "managed, account 8102"


def test_an_unknown_account_is_refused_with_the_known_ones(place: Path, organisation: str, charging: dict[str, str]) -> None:
    code, message = refused("org", "connect", organisation, "--account", "8109", cwd=place, **charging)
    assert code == 1
    assert message.startswith("--account 8109: SERVICE_OCS_TOKEN sees no such account, only 8101 (Demo Retail), 8102 (")
    assert message.endswith(f"; {WAY_OUT}") and "8201" not in message
    assert connection(place) == "managed, account 42"


def test_an_unknown_organisation_is_refused_before_anything_is_asked(place: Path, organisation: str) -> None:
    assert organisation
    for words in (("--account", "8101"), OWN):
        message = refused("org", "connect", "org_none", *words, cwd=place, stdin="some-token", **NOBODY)
        assert message == (1, "org_none: no such organisation; `reseller org list` names them\n")


def test_a_token_is_connected_when_the_charging_system_knows_it(place: Path, organisation: str, charging: dict[str, str]) -> None:
    words = ("org", "connect", organisation, *OWN)
    code, message = refused(*words, cwd=place, stdin="forgotten-token", **charging)
    assert code == 1 and message.startswith("standard input: The charging system does not accept the token")
    assert message.endswith(WAY_OUT) and "forgotten-token" not in message
    assert connection(place) == "managed, account 42"
    own = {"SERVICE_OCS_URL": charging["SERVICE_OCS_URL"]}  # the service's own token is not needed for it
    done = run_reseller(*words, cwd=place, stdin="sandbox-7002-token", **own)
    assert done == (0, f"{organisation} is connected with its own token\n", "")
    assert connection(place) == "own token, assigned account 42"


def test_a_service_token_that_is_not_accepted_is_told_as_such(place: Path, organisation: str, charging: dict[str, str]) -> None:
    wrong = {**charging, "SERVICE_OCS_TOKEN": "forgotten-token"}
    code, message = refused("org", "connect", organisation, "--account", "8101", cwd=place, **wrong)
    assert code == 3 and "Fix: set SERVICE_OCS_TOKEN to the reseller token" in message and "forgotten-token" not in message


@pytest.mark.parametrize(
    ("words", "then"), [(("--account", "8101"), "managed, account 8101"), (OWN, "own token, assigned account 42")], ids=["account", "token"]
)
def test_a_charging_system_that_does_not_answer_refuses_unless_told_not_to_ask(
    words: tuple[str, ...], then: str, place: Path, organisation: str
) -> None:
    command = ("org", "connect", organisation, *words)
    code, message = refused(*command, cwd=place, stdin="a-token", **NOBODY)
    assert code == 3 and message.startswith("http://127.0.0.1:1/v1: The charging system could not be reached (refused)")
    assert message.endswith(f"; {WAY_OUT}") and "a-token" not in message
    assert connection(place) == "managed, account 42"
    assert run_reseller(*command, "--unchecked", cwd=place, stdin="a-token", **NOBODY).stderr == ""
    assert connection(place) == then


def test_what_cannot_be_asked_is_connected_and_told(place: Path, organisation: str, charging: dict[str, str]) -> None:
    simulated = "was not checked: without SERVICE_OCS_URL every process simulates a network of its own\n"
    command = ("org", "connect", organisation)
    assert run_reseller(*command, "--account", "7", cwd=place).stderr == f"account 7 {simulated}"
    assert run_reseller(*command, *OWN, cwd=place, stdin="a-token").stderr == f"the token {simulated}"
    done = run_reseller(*command, "--account", "7", cwd=place, SERVICE_OCS_URL=charging["SERVICE_OCS_URL"])
    assert done.stderr == "account 7 was not checked: no managed account is reached before SERVICE_OCS_TOKEN is set\n"
    assert connection(place) == "managed, account 7"


def test_an_account_is_assigned_when_the_charging_system_knows_it(place: Path, organisation: str, charging: dict[str, str]) -> None:
    words = ("org", "assign", organisation, "--account")
    done = run_reseller(*words, "8103", cwd=place, **charging)
    assert done == (0, f"{organisation} is assigned account 8103; POST /v1/onboarding/managed-account connects it\n", "")
    assert connection(place) == "managed, account 42, assigned account 8103"
    code, message = refused(*words, "8109", cwd=place, **charging)
    assert code == 1 and message.startswith("--account 8109: SERVICE_OCS_TOKEN sees no such account, only 8101")
    assert message.endswith(f"; {WAY_OUT}")
    code, message = refused(*words, "8104", cwd=place, **NOBODY)
    assert code == 3 and message.endswith(f"; {WAY_OUT}")
    assert connection(place) == "managed, account 42, assigned account 8103"
    assert run_reseller(*words, "8104", "--unchecked", cwd=place, **NOBODY).stderr == ""
    assert connection(place) == "managed, account 42, assigned account 8104"
    assert refused("org", "assign", "org_none", "--account", "8104", cwd=place, **NOBODY) == (
        1,
        "org_none: no such organisation; `reseller org list` names them\n",
    )


def test_a_refusal_names_some_of_many_accounts_and_nothing_that_a_terminal_obeys() -> None:
    assert account_list({}) == "nor any other"
    assert account_list({1: "One\x1b[2J", 2: "T" * 70}) == f"only 1 (One?[2J), 2 ({'T' * 60})"
    assert account_list(dict.fromkeys(range(1, 24), "A")).endswith(", 20 (A) and 3 more")
