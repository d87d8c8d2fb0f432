"""`reseller members`: invited, listed and removed beside a running server."""

from pathlib import Path

import orjson
import pytest

from tests.cli.reseller import printed, refused
from tests.harness.processes import Running


@pytest.mark.long
def test_somebody_is_invited_listed_and_not_invited_any_more(place: Path, server: Running) -> None:
    del server
    before = printed("members", "list", cwd=place).splitlines()
    answer = printed("members", "invite", "Bo@Example.com", "--role", "admin", cwd=place)
    id = answer.split(" ")[0]
    assert answer == f"{id} invites bo@example.com as admin\n" and id.startswith("ivt_")
    listed = printed("members", "list", cwd=place).splitlines()
    assert listed == [*before, f"{id}\tadmin\tinvited\tbo@example.com"]
    rows = orjson.loads(printed("members", "list", "--json", cwd=place))["data"]
    assert [row["status"] for row in rows] == ["active"] * len(before) + ["invited"]
    assert printed("members", "remove", id, cwd=place) == f"removed {id}\n"
    assert printed("members", "list", cwd=place).splitlines() == before


def test_the_last_admin_stays(place: Path, server: Running) -> None:
    del server
    id = printed("members", "list", cwd=place).split("\t")[0]
    code, message = refused("members", "remove", id, cwd=place)
    assert code == 1 and "[last_admin]" in message


def test_what_is_no_address_is_explained(place: Path, server: Running) -> None:
    del server
    code, message = refused("members", "invite", "nobody", cwd=place)
    assert code == 1 and "email" in message and "[invalid_request]" in message


@pytest.mark.long
def test_members_of_a_server_elsewhere(place: Path, server: Running, tmp_path: Path) -> None:
    secret = printed("keys", "create", "admin", cwd=place).strip()
    there = ("--url", server.base_url, "--key", secret)
    id = printed("members", "invite", "far@example.com", *there, cwd=tmp_path).split(" ")[0]
    assert f"{id}\tmember\tinvited\tfar@example.com\n" in printed("members", "list", *there, cwd=tmp_path)
    assert printed("members", "remove", id, *there, cwd=tmp_path) == f"removed {id}\n"
