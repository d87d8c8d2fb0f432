"""`reseller audit`: what was done here and at the server, and by whom."""

from pathlib import Path

import httpx
import orjson
import pytest

from tests.cli.reseller import printed, refused, run_reseller
from tests.harness.processes import Running

PLANS = "/v1/connectivity/plans"


def rows(*words: str, cwd: Path) -> list[tuple[str, str, str]]:
    found = orjson.loads(printed("audit", *words, cwd=cwd))["data"]
    return [(row["operation"], row["outcome"], row["surface"]) for row in found]


@pytest.mark.long
def test_what_the_command_line_changes_is_in_the_organisation_s_log(tmp_path: Path) -> None:
    organisation = printed("org", "create", "Acme", cwd=tmp_path).strip()
    printed("org", "set-tier", organisation, "pro", cwd=tmp_path)
    printed("keys", "create", "first", cwd=tmp_path)
    key = printed("keys", "list", cwd=tmp_path).split("\t")[0]
    printed("keys", "revoke", key, cwd=tmp_path)
    invitation = printed("members", "invite", "bo@example.com", cwd=tmp_path).split(" ")[0]
    printed("members", "remove", invitation, cwd=tmp_path)
    assert rows(cwd=tmp_path) == [
        ("remove_member", "ok", "cli"),
        ("invite_member", "ok", "cli"),
        ("revoke_api_key", "ok", "cli"),
        ("list_api_keys", "ok", "cli"),
        ("create_api_key", "ok", "cli"),
        ("org_set_tier", "tier_pro", "cli"),
    ]
    text = printed("audit", cwd=tmp_path)
    assert "bo@example.com" not in text
    refused("org", "set-tier", "org_none", "pro", cwd=tmp_path)
    assert rows("--operation", "org_set_tier", cwd=tmp_path) == [("org_set_tier", "tier_pro", "cli")]


@pytest.mark.long
def test_calls_of_a_server_are_found_by_what_they_were(place: Path, server: Running, tmp_path: Path) -> None:
    secret = printed("keys", "create", "admin", cwd=place).strip()
    there = ("--url", server.base_url, "--key", secret)
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}"}) as http:
        assert http.get(PLANS).status_code == 200
        assert http.get("/v1/connectivity/intents/cni_none").status_code == 404
    assert rows("--surface", "http", "--outcome", "not_found", *there, cwd=tmp_path) == [("get_connectivity_intent", "not_found", "http")]
    assert rows("--operation", "list_connectivity_plans", "--since", "1h", *there, cwd=tmp_path)[0][1] == "ok"
    assert rows("--principal", "usr_none", *there, cwd=tmp_path) == [] == rows("--key-id", "key_none", *there, cwd=tmp_path)


@pytest.mark.long
def test_a_page_says_how_to_see_more(place: Path, server: Running) -> None:
    del server
    for _ in range(2):
        printed("keys", "list", cwd=place)
    done = run_reseller("audit", "--limit", "1", cwd=place)
    first = orjson.loads(done.stdout)["data"][0]["id"]
    assert done.stderr == f"more: --starting-after {first}\n"
    second = orjson.loads(printed("audit", "--limit", "1", "--starting-after", first, cwd=place))["data"][0]["id"]
    assert second != first


@pytest.mark.long
def test_what_cannot_be_is_explained(place: Path, server: Running) -> None:
    del server
    code, message = refused("audit", "--surface", "phone", cwd=place)
    assert code == 1 and "surface" in message
    assert refused("audit", "--since", "soon", cwd=place)[0] == 2
