"""`reseller call`: any operation, here or on a server, for programs and for people."""

import json
from pathlib import Path

import pytest

from tests.cli.reseller import printed, refused, run_reseller
from tests.cli.terminal import at_terminal
from tests.harness.processes import Running
from transports.cli.call import repeatable_command


@pytest.fixture(params=["local", "remote"])
def where(request: pytest.FixtureRequest, server: Running) -> dict[str, str]:
    """The settings that send a call to the database here, or to the server."""
    if request.param == "local":
        return {}
    return {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}


def test_a_read_and_a_write_print_json_into_a_pipe(place: Path, where: dict[str, str]) -> None:
    words = ("call", "create_connectivity_intent", "--plan", "test_eu_1gb", "--metadata", '{"order": "A 17"}')
    made = run_reseller(*words, "--idempotency-key", "one", cwd=place, **where)
    assert (made.returncode, made.stderr) == (0, "")
    intent = json.loads(made.stdout)
    assert (intent["status"], intent["livemode"], intent["metadata"]) == ("succeeded", False, {"order": "A 17"})
    assert json.loads(printed("call", "get_connectivity_intent", "--id", intent["id"], cwd=place, **where)) == intent


@pytest.mark.long
def test_here_and_there_are_the_same_service(place: Path, server: Running) -> None:
    there = {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}
    fields = {"name": "Weekend", "data-mb": 500, "validity-days": 3, "price-cents": 500, "currency": "EUR", "package-template-id": 55015}
    words = ("call", "create_connectivity_product", *(f"--{name}={value}" for name, value in fields.items()))
    assert json.loads(printed(*words, "--countries", "DE,FR", cwd=place, **there))["countries"] == ["DE", "FR"]
    assert json.loads(printed(*words, "--countries", '["DE", "FR"]', cwd=place, **there))["countries"] == ["DE", "FR"]
    several = ("--countries", "NO", "--countries", "FR, DE", "--countries", '["SE"]')
    assert json.loads(printed(*words, *several, cwd=place))["countries"] == ["NO", "FR", "DE", "SE"]
    product = json.loads(printed("call", "list_connectivity_products", "--starting-after=", cwd=place))["data"][0]
    read = json.loads(printed("call", "get_connectivity_product", "--id", product["id"], cwd=place, **there))
    listed = json.loads(printed("call", "list_connectivity_products", "--limit=1", "--starting-after=", cwd=place, **there))
    [row] = listed.pop("data")
    assert listed == {"object": "list", "has_more": True}
    for each in (product, read, row):
        del each["warnings"]  # a network that is slow to answer is one of them
    assert product == read == row


def test_a_refusal_teaches_on_stderr_and_ends_with_1(place: Path, where: dict[str, str]) -> None:
    code, message = refused("call", "get_connectivity_intent", "--id", "cni_none", cwd=place, **where)
    assert code == 1
    lines = message.splitlines()
    assert lines[:2] == [
        "Your organisation has no intent with this id  [not_found]",
        "  list_connectivity_intents names the ones you created",
    ]
    assert lines[2].startswith("  request id req_")


@pytest.mark.long
def test_a_list_of_numbers_is_given_like_a_list_of_words(place: Path, where: dict[str, str]) -> None:
    words = ("call", "create_invoice", "--period-id", "per_" + "0" * 26)
    for given in (("--account-ids", "8101,8102"), ("--account-ids", "8101", "--account-ids=8102"), ("--account-ids", "[8101, 8102]")):
        assert "[not_found]" in refused(*words, *given, cwd=place, **where)[1].splitlines()[0]
    assert refused(*words, "--account-ids", "8101,EUR", cwd=place, **where)[1].startswith("--account-ids: must be an integer; got EUR")


@pytest.mark.long
def test_a_key_for_the_repetition_is_made_when_none_is_given(place: Path, server: Running) -> None:
    del server
    made = run_reseller("call", "create_connectivity_intent", "--plan", "test_eu_1gb", cwd=place)
    label, _, key = made.stderr.strip().partition(": ")
    assert label == "idempotency key" and key.startswith("cli-")
    again = printed("call", "create_connectivity_intent", "--plan", "test_eu_1gb", "--idempotency-key", key, cwd=place)
    assert json.loads(again) == json.loads(made.stdout)


@pytest.mark.cases
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list_subscribers", "--fields", "iccid", "--fields", "[imsi"), "--fields: must be JSON, for example "),
        (("create_intent",), "Did you mean 'create_invoice', 'create_connectivity_intent'"),
        (("get_connectivity_intent",), "Missing option '--id'"),
        (
            ("create_connectivity_intent", "--metadata", "order=17"),
            '--metadata: must be JSON, for example \'{"order": "A-17"}\'; got order=17',
        ),
    ],
    ids=["json-in-list", "operation", "option", "json"],
)
def test_a_command_that_cannot_be_understood_ends_with_2(words: tuple[str, ...], said: str, place: Path, server: Running) -> None:
    del server
    code, message = refused("call", *words, cwd=place)
    assert code == 2
    assert said in " ".join(message.replace("│", " ").split())


def test_a_server_that_does_not_answer_ends_with_3(place: Path) -> None:
    code, message = refused("call", "health_check", "--url", "http://127.0.0.1:1", cwd=place)
    assert (code, message) == (3, "--url: http://127.0.0.1:1 does not answer (refused); is the server running there?\n")


def test_a_server_that_does_not_know_the_key_says_so(place: Path, server: Running) -> None:
    code, message = refused("call", "list_connectivity_plans", "--url", server.base_url, "--key", "ak_wrong", cwd=place)
    assert code == 1
    assert "[unauthorized]" in message and "  Here the credential is given with --key or RESELLER_API_KEY\n" in message


def test_a_directory_without_a_database_is_named_and_stays_as_it_is(tmp_path: Path) -> None:
    sentence = (
        f"there is no database at {tmp_path}/data/service.db; start the service there, or name its directory with --data or SERVICE_DATA\n"
    )
    for words in (("call", "list_connectivity_plans"), ("keys", "list"), ("org", "list"), ("org", "set-tier", "org_1", "pro")):
        assert refused(*words, cwd=tmp_path) == (2, sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_database_without_an_organisation_says_how_to_get_one(home: Path) -> None:
    assert refused("call", "list_connectivity_plans", cwd=home) == (
        2,
        "the database has no organisation yet; `reseller serve` on an empty one makes a demo organisation\n",
    )


def test_an_input_that_is_named_like_an_option_is_told_apart(place: Path, server: Running) -> None:
    words = ("call", "create_connectivity_webhook_endpoint", "--input-url", "https://93.184.215.14/hook")
    made = json.loads(printed(*words, "--url", server.base_url, "--key", str(server.api_key), cwd=place))
    assert made["url"] == "https://93.184.215.14/hook"


@pytest.mark.long
def test_an_issued_esim_shows_its_qr_code_on_a_terminal(place: Path, server: Running) -> None:
    del server
    code, shown = at_terminal("call", "create_connectivity_intent", "--plan", "test_global_1gb", cwd=place)
    assert code == 0, shown
    assert "Scan with the phone that gets the eSIM:" in shown
    assert len([line for line in shown.splitlines() if set("█▄▀") & set(line)]) > 10
    assert "esim.activation_code" in shown and "LPA:1$" in shown


@pytest.mark.long
def test_a_list_is_a_table_on_a_terminal_and_json_when_asked_for(place: Path, server: Running) -> None:
    there = {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}
    code, table = at_terminal("call", "list_connectivity_plans", cwd=place, settings=there)
    assert code == 0
    assert "test_global_1gb" in table and "validity_days" in table and "{" not in table.splitlines()[0]
    code, plain = at_terminal("call", "list_connectivity_plans", "--json", cwd=place, settings=there)
    assert code == 0
    assert json.loads(plain)["object"] == "list"


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 140])
def test_ids_are_shown_whole_whatever_the_width_of_the_terminal(columns: int, place: Path, server: Running) -> None:
    del server
    made = json.loads(printed("call", "create_connectivity_intent", "--plan", "test_eu_1gb", "--idempotency-key", "whole", cwd=place))
    code, shown = at_terminal("call", "list_connectivity_intents", cwd=place, columns=columns)
    assert code == 0, shown
    assert made["id"] in shown and made["esim"]["iccid"] in shown


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (["call", "x", "--id", "a b"], "reseller call x --id 'a b'"),
        (["call", "x", "--key", "ak_hidden", "--id", "1", "--json"], "reseller call x --key '<API_KEY>' --id 1"),
        (["call", "x", "--key=ak_hidden", "--confirm-token", "used", "--yes"], "reseller call x --key '<API_KEY>' --yes"),
        (["call", "x", "--confirm-token=used", "--url", "http://h"], "reseller call x --url http://h"),
    ],
    ids=["plain", "key", "key-with-equals", "token-with-equals"],
)
def test_the_command_to_type_again_repeats_neither_the_key_nor_a_token_that_was_used(words: list[str], again: str) -> None:
    assert repeatable_command(words) == again
