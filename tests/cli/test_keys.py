"""`reseller keys`: made, listed and revoked beside a running server."""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import orjson
import pytest

from tests.cli.reseller import printed, refused
from tests.harness.processes import Running

PLANS = "/v1/connectivity/plans"


@pytest.mark.long
def test_a_key_works_at_once_and_is_refused_at_the_next_call_after_it_was_revoked(place: Path, server: Running) -> None:
    secret = printed("keys", "create", "laptop", "--days", "30", cwd=place).strip()
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}"}) as http:
        assert http.get(PLANS).status_code == 200
        rows = [line.split("\t") for line in printed("keys", "list", cwd=place).splitlines()]
        assert [row[2] for row in rows] == ["laptop", "demo"]
        assert rows[0][1] == secret[:12] + "..."
        assert rows[0][4].startswith("expires 20")
        assert http.get(PLANS).status_code == 200
        assert printed("keys", "revoke", rows[0][0], cwd=place) == f"revoked {rows[0][0]}\n"
        assert http.get(PLANS).status_code == 401
    assert printed("keys", "list", cwd=place).splitlines()[0].endswith("\trevoked")
    assert printed("keys", "revoke", rows[0][0], cwd=place) == f"revoked {rows[0][0]}\n"
    assert secret not in printed("keys", "list", cwd=place)


def test_a_name_that_cannot_be_is_explained(place: Path, server: Running) -> None:
    del server
    code, message = refused("keys", "create", "x" * 65, cwd=place)
    assert code == 1
    assert "name" in message and "[invalid_request]" in message


def test_an_unknown_organisation_is_named(place: Path, server: Running) -> None:
    del server
    assert refused("keys", "list", "--org", "org_none", cwd=place) == (2, "--org: org_none is unknown or has no members\n")


def test_a_key_that_is_not_there_is_told(place: Path, server: Running) -> None:
    del server
    code, message = refused("keys", "revoke", "key_none", cwd=place)
    assert code == 1 and "There is no API key with this id" in message


def test_a_key_is_made_to_do_less_and_the_list_says_so(place: Path, server: Running) -> None:
    words = ("--read-only", "--toolset", "connectivity", "--toolset", "subscribers", "--calls-per-day", "7")
    secret = printed("keys", "create", "desk", *words, cwd=place).strip()
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}"}) as http:
        assert http.get(PLANS).status_code == 200
        refusal = http.get("/v1/members").json()
        assert refusal["code"] == "credential_restricted"
    row = printed("keys", "list", cwd=place).splitlines()[0].split("\t")
    assert row[2:] == ["desk", row[3], "never expires", "read only, toolsets connectivity subscribers, 7 calls a day"]
    listed = orjson.loads(printed("keys", "list", "--json", cwd=place))["data"][0]
    assert listed["restrictions"]["calls_per_day"] == 7 and secret[12:] not in str(listed)


def test_a_key_for_named_lines_or_accounts_is_shown_with_them(place: Path, server: Running) -> None:
    del server
    printed("keys", "create", "lines", "--iccid", "8988303700000100286", "--iccid", "8988303700000100294", cwd=place)
    printed("keys", "create", "account", "--account", "8101", cwd=place)
    rows = [line.split("\t") for line in printed("keys", "list", cwd=place).splitlines()]
    assert [row[-1] for row in rows[:2]] == ["accounts 8101", "lines 8988303700000100286 8988303700000100294"]


def test_keys_of_a_server_elsewhere_are_looked_after_with_a_key(place: Path, server: Running, tmp_path: Path) -> None:
    secret = printed("keys", "create", "admin", cwd=place).strip()
    there = ("--url", server.base_url, "--key", secret)
    made = printed("keys", "create", "far", "--read-only", *there, cwd=tmp_path).strip()
    row = printed("keys", "list", *there, cwd=tmp_path).splitlines()[0].split("\t")
    assert (row[1], row[2]) == (made[:12] + "...", "far")
    assert printed("keys", "revoke", row[0], *there, cwd=tmp_path) == f"revoked {row[0]}\n"
    code, message = refused("keys", "create", "more", "--toolset", "nonesuch", *there, cwd=tmp_path)
    assert code == 1 and "restrictions.toolsets: got nonesuch" in message


@pytest.mark.long
def test_a_name_draws_nothing_on_the_terminal_and_makes_no_further_row(place: Path, server: Running) -> None:
    del server
    printed("keys", "create", "x", cwd=place)
    name = "a\x1b[2Jb\tactive\nkey_forged\u202e"
    with closing(sqlite3.connect(place / "data" / "service.db", isolation_level=None)) as database:  # 1.0 took any name
        database.execute("update api_key set name = ? where name = 'x'", (name,))
    listed = printed("keys", "list", cwd=place)
    assert listed.splitlines()[0].split("\t")[2] == "a?[2Jb?active?key_forged?"
    assert orjson.loads(printed("keys", "list", "--json", cwd=place))["data"][0]["name"] == name
