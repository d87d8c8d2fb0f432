"""`reseller call` on a fleet: every kind of value goes in (false, null, objects, JSON), and every kind of answer is shown."""

import json
import re
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from tests.cli.reseller import printed, run_reseller
from tests.cli.terminal import at_terminal
from tests.harness.processes import Running
from transports.cli.call import TAKEN_OPTIONS, option_flag, takes_null


@pytest.fixture(scope="module")
def there(server: Running) -> dict[str, str]:
    return {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}


@pytest.fixture(scope="module")
def lines(place: Path, there: dict[str, str]) -> list[str]:
    words = ("list_subscribers", "--status", "ACTIVE", "--fields", "iccid", "--limit", "5")
    return [row["iccid"] for row in json.loads(printed("call", *words, cwd=place, **there))["data"]]


@pytest.fixture(scope="module")
def template(place: Path, there: dict[str, str], lines: list[str]) -> int:
    return json.loads(printed("call", "list_subscriber_packages", "--iccid", lines[0], cwd=place, **there))["data"][0]["templateId"]


def test_false_is_said_with_no_and_true_without_it(place: Path, there: dict[str, str], lines: list[str]) -> None:
    words = ("call", "set_subscriber_traffic_restrictions", "--iccid", lines[0])
    printed(*words, "--no-input-data", "--no-moc", "--sms", cwd=place, **there)
    line = json.loads(printed("call", "get_subscriber", "--iccid", lines[0], cwd=place, **there))["data"]
    assert (line["allowedData"], line["allowedMoc"], line["allowedMosms"], line["allowedMtc"]) == (False, False, True, True)
    printed(*words, "--input-data", cwd=place, **there)
    line = json.loads(printed("call", "get_subscriber", "--iccid", lines[0], cwd=place, **there))["data"]
    assert (line["allowedData"], line["allowedMoc"]) == (True, False)


def test_null_is_a_word_where_it_removes_something(place: Path, there: dict[str, str], lines: list[str]) -> None:
    words = ("call", "modify_subscriber_voip_plan", "--iccid", lines[1], "--planId")
    assert json.loads(printed(*words, "null", cwd=place, **there)) == {"data": {"planId": None}}
    done = run_reseller(*words, "none", cwd=place, **there)
    assert (done.returncode, done.stderr) == (2, "--planId: must be an integer or null; got none\n")
    done = run_reseller(*words, "999999", cwd=place, **there)
    assert done.returncode == 1 and done.stderr.startswith("Your reseller has nothing with this planId")


def test_an_object_is_json_text(place: Path, there: dict[str, str], lines: list[str], template: int) -> None:
    words = ("call", "assign_package", "--iccid", lines[2], "--packageTemplateId", str(template), "--idempotency-key", "dated")
    period = '{"start": "2031-01-01", "end": "2031-01-31"}'
    assert json.loads(printed(*words, "--activePeriod", period, cwd=place, **there))["data"]["iccid"] == lines[2]
    done = run_reseller(*words, "--activePeriod", "2031", cwd=place, **there)
    assert done.returncode == 1 and "activePeriod: got 2031; must be an object" in done.stderr


def test_the_whole_input_is_one_object_instead_of_options(place: Path, there: dict[str, str], lines: list[str], template: int) -> None:
    whole = {"iccid": lines[3], "packageTemplateId": template, "activePeriod": {"start": "2031-01-01", "end": "2031-01-31"}}
    words = ("call", "assign_package", "--idempotency-key", "whole", "--json-input", json.dumps(whole))
    assert json.loads(printed(*words, cwd=place, **there))["data"]["iccid"] == lines[3]
    done = run_reseller(*words, "--iccid", lines[3], cwd=place, **there)
    assert done.returncode == 2 and done.stderr.startswith("--json-input: is the whole input; leave out --iccid, or ")
    done = run_reseller("call", "get_subscriber", "--json-input", '{"gzCounter": false}', cwd=place, **there)
    assert (done.returncode, done.stderr) == (2, "iccid: missing; it is part of the address /v1/subscribers/{iccid}\n")
    done = run_reseller("call", "get_subscriber", "--json-input", "[]", cwd=place, **there)
    assert (done.returncode, done.stderr) == (2, "--json-input: must be a JSON object with the operation's fields; got []\n")
    words = ("call", "list_connectivity_plans", "--json-input", '{"limit": 1, "starting_after": null}')
    assert len(json.loads(printed(*words, cwd=place, **there))["data"]) == 1


@pytest.mark.long
@pytest.mark.parametrize("local", [True, False], ids=["here", "there"])
def test_an_answer_that_has_more_says_how_to_go_on(local: bool, place: Path, there: dict[str, str]) -> None:
    where = {} if local else there
    for _ in range(3):
        printed("call", "create_connectivity_intent", "--plan", "test_eu_1gb", cwd=place, **where)
    words, shown = ("call", "list_connectivity_intents", "--limit", "2"), list[str]()
    done = run_reseller(*words, cwd=place, **where)
    while done.stderr:
        shown += [row["id"] for row in json.loads(done.stdout)["data"]]
        more = re.fullmatch(r"more: (--starting-after) (\S+)\n", done.stderr)
        assert more and len(shown) < 50
        done = run_reseller(*words, *more.groups(), cwd=place, **where)
    shown += [row["id"] for row in json.loads(done.stdout)["data"]]
    assert shown == [row["id"] for row in json.loads(printed("call", "list_connectivity_intents", cwd=place, **where))["data"]]
    assert len(shown) > 2


def test_at_a_terminal_more_is_told_as_well(place: Path, there: dict[str, str]) -> None:
    code, shown = at_terminal("call", "list_subscribers", "--limit", "1", cwd=place, settings=there)
    assert code == 0 and re.search(r"^more: --starting-after \d+\r$", shown, re.MULTILINE), shown


@pytest.mark.long
def test_the_help_names_the_values_of_a_field_and_the_name_behind_another_option(tmp_path: Path) -> None:
    def helped(operation: str) -> str:
        return " ".join(printed("call", operation, "--help", cwd=tmp_path, COLUMNS="160").replace("│", " ").split())

    assert "One of: ACTIVE, SUSPENDED, INACTIVE, DISCONNECTED, END_OF_LIFE." in helped("modify_subscriber_status")
    restrictions = helped("set_subscriber_traffic_restrictions")
    assert "--input-data --no-input-data" in restrictions and "The field `data`." in restrictions
    assert "--planId INTEGER|null" in helped("modify_subscriber_mobile_plan")
    assert "--activePeriod JSON Exact dates instead. An object with start, end." in helped("assign_package")
    assert "One of: 128, 256," in helped("create_package_template")


def test_no_two_fields_share_an_option() -> None:
    for operation in CATALOGUE.operations.values():
        flags = [option_flag(info.alias or name, TAKEN_OPTIONS) for name, info in operation.params.model_fields.items()]
        assert len(set(flags)) == len(flags), operation.id
        assert not {f"--no-{word.removeprefix('--')}" for word in flags} & set(flags), operation.id


def test_null_can_be_said_of_every_required_field_that_takes_it() -> None:
    found = {
        f"{operation.id} {info.alias}"
        for operation in CATALOGUE.operations.values()
        for info in operation.params.model_fields.values()
        if info.is_required() and takes_null(operation.params, info)
    }
    assert found >= {"modify_subscriber_voip_plan planId", "modify_subscriber_mobile_plan planId"}


@pytest.mark.cases
@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("get_subscriber",), "currentStatus"),
        (("send_sms", "--message", "hello", "--yes"), "sent"),
        (("modify_subscriber_status", "--status", "ACTIVE"), "status"),
        (("subscriber_usage",), "dataBytes"),
        (("hlr_get_bitrate",), "bitrate"),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else None,
)
@pytest.mark.parametrize("columns", [60, 140])
def test_an_operation_on_a_line_shows_its_answer(
    words: tuple[str, ...], field: str, columns: int, place: Path, lines: list[str], there: dict[str, str]
) -> None:
    code, shown = at_terminal("call", *words, "--iccid", lines[4], cwd=place, columns=columns, settings=there)
    assert code == 0 and field in shown, shown


@pytest.mark.cases
@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("get_reseller_info",), "id"),
        (("esim_status_per_account", "--accountId", "8101"), "8101"),
        (("plan_network_default", "--countries", "NO,SE"), "mode"),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else None,
)
def test_an_operation_on_everything_shows_its_answer(words: tuple[str, ...], field: str, place: Path, there: dict[str, str]) -> None:
    code, shown = at_terminal("call", *words, cwd=place, settings=there)
    assert code == 0 and field in shown, shown


@pytest.mark.long
def test_a_package_is_shown_once_it_is_assigned(place: Path, lines: list[str], there: dict[str, str]) -> None:
    template = json.loads(printed("call", "list_subscriber_packages", "--iccid", lines[4], cwd=place, **there))["data"][0]["templateId"]
    words = ("assign_package", "--iccid", lines[4], "--packageTemplateId", str(template), "--idempotency-key", "shown")
    code, shown = at_terminal("call", *words, cwd=place, settings=there)
    assert code == 0 and lines[4] in shown, shown
    assert "subsPackageId" in shown
