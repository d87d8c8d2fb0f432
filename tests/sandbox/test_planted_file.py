"""`reseller sandbox ocs --plant --truth`: the network on the wire, the truth in a file that only its owner reads."""

import json
from pathlib import Path

import pytest

from tests.cli.network import network
from tests.cli.reseller import refused

TOKEN = {"token": "sandbox-7001-token"}
PLANT = ("--plant", "--lines", "140", "--history-days", "60", "--clock", "frozen", "--start", "2027-01-15T00:00:00")


@pytest.mark.long
def test_a_planted_network_is_served_and_its_truth_is_in_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "truth.json"
    with network(tmp_path, *PLANT, "--truth", str(file)) as (http, said):
        truth = json.loads(file.read_text())
        assert file.stat().st_mode & 0o777 == 0o600
        assert set(truth) >= {"churn", "spikes", "mis_steered", "wrong_package", "high_cost", "abroad", "troubles"}
        lines = http.post("/v1", params=TOKEN, json={"listSubscriber": {"accountId": 8101}})
        state = http.get("/control/state")
        shown = said + lines.text + state.text
        known = {line["imsiList"][-1]["iccid"] for line in lines.json()["listSubscriber"]["subscriberList"]}
    assert known & set(truth["churn"])
    assert not [word for word in ("churn", "spike", "mis_steered", "truth") if word in shown]


@pytest.mark.long
def test_lines_beside_limits_are_in_the_file_by_trouble_and_side(tmp_path: Path) -> None:
    file = tmp_path / "truth.json"
    words = (
        "--plant",
        "--borders",
        "--lines",
        "400",
        "--history-days",
        "60",
        "--clock",
        "frozen",
        "--start",
        "2027-01-15T00:00:00",
        "--truth",
        str(file),
    )
    with network(tmp_path, *words) as (http, said):
        borders: dict[str, str] = json.loads(file.read_text())["borders"]
        found = http.post("/v1", params=TOKEN, json={"getSingleSubscriber": {"iccid": borders["suspended inside"]}}).json()
    assert {name.split()[1] for name in borders} == {"inside", "outside", "plain"}
    assert found["getSingleSubscriber"]["status"][-1]["status"] == "Suspended"
    assert not [iccid for iccid in borders.values() if iccid in said]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--borders",), "--borders"),
        (("--plant", "--borders", "--lines", "399"), "399 lines"),
        (("--truth", "t.json"), "--truth t.json"),
        (("--plant", "--lines", "139"), "139 lines"),
        (("--plant", "--history-days", "59"), "59 days"),
        (("--plant", "--truth", "missing/t.json", "--lines", "140", "--history-days", "60"), "cannot be written"),
    ],
)
def test_what_cannot_be_planted_or_told_is_refused(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    assert why in refused("sandbox", "ocs", "--port", "0", *words, cwd=tmp_path)[1]
    assert not list(tmp_path.iterdir())
