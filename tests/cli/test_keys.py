"""`reseller keys`: made, listed and revoked beside a running server."""

from pathlib import Path

import httpx

from tests.cli.reseller import refused, said
from tests.running import Running

PLANS = "/v1/connectivity/plans"


def test_a_key_works_at_once_and_is_refused_at_the_next_call_after_it_was_revoked(place: Path, server: Running) -> None:
    secret = said("keys", "create", "laptop", "--days", "30", cwd=place).strip()
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}"}) as http:
        assert http.get(PLANS).status_code == 200
        rows = [line.split("\t") for line in said("keys", "list", cwd=place).splitlines()]
        assert [row[2] for row in rows] == ["laptop", "demo"]
        assert rows[0][1] == secret[:12] + "..."
        assert rows[0][4].startswith("expires 20")
        assert http.get(PLANS).status_code == 200
        assert said("keys", "revoke", rows[0][0], cwd=place) == f"revoked {rows[0][0]}\n"
        assert http.get(PLANS).status_code == 401
    assert said("keys", "list", cwd=place).splitlines()[0].endswith("\trevoked")
    assert refused("keys", "revoke", rows[0][0], cwd=place) == (1, f"{rows[0][0]}: no such key, or revoked already\n")
    assert secret not in said("keys", "list", cwd=place)


def test_a_name_that_cannot_be_is_explained(place: Path, server: Running) -> None:
    del server
    code, message = refused("keys", "create", "x" * 65, cwd=place)
    assert code == 1
    assert "name" in message and "[invalid_request]" in message


def test_an_unknown_organisation_is_named(place: Path, server: Running) -> None:
    del server
    assert refused("keys", "list", "--org", "org_none", cwd=place) == (2, "--org: org_none is unknown or has no members\n")
