"""What a release said of events stays true: types and members are only added."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from operations.event_types.catalogue import EVENT_TYPES, PROMISED_TYPES
from operations.event_types.esim import ESIM_ISSUED
from tests.events.release import RELEASED, ReleasedType, broken_event_promises, declared_types, read_released, release_events, renew
from transports.openapi.schemas import OpenapiJson

Types = dict[str, ReleasedType]


def test_the_declared_types_keep_what_was_released() -> None:
    """A type that is new has the next release as its `since`. `python -m tests.events.release VERSION` renews the file at a release."""
    assert list(broken_event_promises(read_released(), declared_types())) == []


def test_the_first_release_promised_three_types() -> None:
    assert {name for name, each in read_released()["types"].items() if each["since"] == "1.0.0"} == set(PROMISED_TYPES)


def data(types: Types, name: str = "usage.threshold_reached") -> OpenapiJson:
    found: OpenapiJson = types[name]["schema"]["properties"]["data"]
    return found


def without_a_type(types: Types) -> None:
    del types["esim.issued"]


def without_a_member(types: Types) -> None:
    del data(types)["properties"]["used_mb"]


def without_a_member_of_the_envelope(types: Types) -> None:
    del types["esim.issued"]["schema"]["properties"]["livemode"]


def with_a_member_that_may_be_missing(types: Types) -> None:
    data(types)["required"].remove("plan")


def with_another_type_of_a_member(types: Types) -> None:
    data(types)["properties"]["used_mb"] = {"type": "string"}


def with_a_member_that_may_be_null(types: Types) -> None:
    data(types)["properties"]["intent"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def with_a_member_that_is_no_longer_null(types: Types) -> None:
    data(types)["properties"]["plan"] = {"type": "string"}


def without_a_value(types: Types) -> None:
    data(types)["properties"]["state"]["enum"].remove("done")


def with_any_value(types: Types) -> None:
    data(types)["properties"]["state"] = {"type": "string"}


def with_a_wider_bound(types: Types) -> None:
    data(types)["properties"]["rows"]["maxItems"] = 5


def with_another_pattern(types: Types) -> None:
    data(types)["properties"]["code"]["pattern"] = "^[a-z]+$"


def without_a_member_deep_inside(types: Types) -> None:
    del data(types)["properties"]["rows"]["items"]["properties"]["mb"]


def with_another_since(types: Types) -> None:
    types["esim.issued"]["since"] = "1.1.0"


def with_a_lower_version(types: Types) -> None:
    types["esim.issued"]["version"] = 0


def with_a_new_type_of_an_old_release(types: Types) -> None:
    types["esim.melted"] = copy.deepcopy(types["esim.issued"])


def rich() -> Types:
    """The declared types of the release, one with members of every kind."""
    types = {name: each for name, each in declared_types().items() if name in PROMISED_TYPES}
    row: OpenapiJson = {"type": "object", "properties": {"mb": {"type": "integer"}}, "required": ["mb"]}
    data(types)["properties"] |= {
        "state": {"type": "string", "enum": ["done", "failed"]},
        "rows": {"type": "array", "items": row, "maxItems": 4, "minItems": 1},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
    }
    return types


@pytest.mark.cases
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_a_type, "esim.issued is gone"),
        (without_a_member, "usage.threshold_reached.data.used_mb is gone"),
        (without_a_member_of_the_envelope, "esim.issued.livemode is gone"),
        (with_a_member_that_may_be_missing, "usage.threshold_reached.data.plan was always there, and may be missing"),
        (with_another_type_of_a_member, "usage.threshold_reached.data.used_mb was number, and is string"),
        (with_a_member_that_may_be_null, "usage.threshold_reached.data.intent was string, and is string or null"),
        (with_a_member_that_is_no_longer_null, "usage.threshold_reached.data.plan was string or null, and is string"),
        (without_a_value, "usage.threshold_reached.data.state can no longer be done"),
        (with_any_value, "usage.threshold_reached.data.state was one of ['done', 'failed'], and is anything"),
        (with_a_wider_bound, "usage.threshold_reached.data.rows: maxItems was 4, and is 5"),
        (with_another_pattern, "usage.threshold_reached.data.code: pattern was ^[A-Z]+$, and is ^[a-z]+$"),
        (without_a_member_deep_inside, "usage.threshold_reached.data.rows[].mb is gone"),
        (with_another_since, "esim.issued is since 1.0.0, not 1.1.0"),
        (with_a_lower_version, "esim.issued has version 1, not 0"),
        (with_a_new_type_of_an_old_release, "esim.melted is new, and not since 1.0.0: 1.0.0 was released without it"),
    ],
)
def test_what_takes_something_away_is_told(change: Callable[[Types], None], said: str) -> None:
    changed = rich()
    change(changed)
    assert list(broken_event_promises({"release": "1.0.0", "types": rich()}, changed)) == [said]


@pytest.mark.long
def test_types_members_values_narrower_bounds_and_other_words_may_be_added() -> None:
    changed = rich()
    changed["esim.melted"] = {**copy.deepcopy(changed["esim.issued"]), "since": "1.0.1"}
    members = data(changed)["properties"]
    members["note"] = {"type": "string"}
    members["state"]["enum"].append("late")
    members["state"]["description"] = "How it went."
    members["rows"] |= {"maxItems": 3, "minItems": 2}
    members["rows"]["items"]["properties"]["days"] = {"type": "integer"}
    data(changed)["required"].append("note")
    assert list(broken_event_promises({"release": "1.0.0", "types": rich()}, changed)) == []


@pytest.mark.long
def test_a_release_writes_the_types_it_has_and_the_next_one_is_compared_with_them(tmp_path: Path) -> None:
    path = tmp_path / "released.json"
    path.write_bytes(RELEASED.read_bytes())
    later = replace(ESIM_ISSUED, name="esim.melted", since="9.9.0")
    assert renew("9.8.0", path, {**EVENT_TYPES, later.name: later}) == []
    assert (read_released(path)["release"], set(read_released(path)["types"])) == ("9.8.0", set(EVENT_TYPES))
    assert renew("9.9.0", path, {**EVENT_TYPES, later.name: later}) == []
    assert set(read_released(path)["types"]) == {*EVENT_TYPES, later.name}
    before = path.read_bytes()
    assert renew("10.0.0", path, EVENT_TYPES) == ["esim.melted is gone"]
    assert renew("9.8.0", path, {**EVENT_TYPES, later.name: later}) == ["9.8.0 is older than 9.9.0, which is released"]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "status", "said"), [(["0.9.0"], 1, "0.9.0 is older than "), ([], 2, "usage: "), (["next"], 2, "usage: ")]
)
def test_the_command_tells_what_it_refuses_and_writes_nothing(
    words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = RELEASED.read_bytes()
    assert (release_events(words), capsys.readouterr().err.startswith(said)) == (status, True)
    assert RELEASED.read_bytes() == before
