"""`reseller org`: how a deployment without demo data gets its first organisation, and what a tier changes."""

from pathlib import Path

import httpx

from tests.cli.reseller import refused, said
from tests.running import Running

PRODUCT = {
    "name": "Nordic 1 GB",
    "data_mb": 1000,
    "validity_days": 30,
    "countries": ["SE"],
    "price_cents": 500,
    "currency": "EUR",
    "package_template_id": 7,
}


def test_an_empty_database_gets_its_first_organisation_admin_and_key(tmp_path: Path) -> None:
    organisation = said("org", "create", "Acme Mobile", "--tier", "pro", "--email", "admin@acme.test", cwd=tmp_path).strip()
    assert said("org", "list", cwd=tmp_path) == f"{organisation}\tpro\tAcme Mobile\n"
    assert said("keys", "create", "first", cwd=tmp_path).startswith("ak_")


def test_a_new_tier_counts_with_the_next_call_of_a_running_server(place: Path, server: Running) -> None:
    organisation = said("org", "create", "Small Reseller", cwd=place).strip()
    secret = said("keys", "create", "first", "--org", organisation, cwd=place).strip()
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": "p1"}) as http:
        assert http.post("/v1/connectivity/products", json=PRODUCT).status_code == 402
        assert said("org", "set-tier", organisation, "pro", cwd=place) == f"{organisation} is pro\n"
        assert http.post("/v1/connectivity/products", json=PRODUCT).status_code == 201


def test_one_person_of_an_identity_provider_may_found_two_organisations(tmp_path: Path) -> None:
    first, second = (said("org", "create", name, "--subject", "user_1", cwd=tmp_path).strip() for name in ("First", "Second"))
    assert first != second


def test_a_name_or_an_organisation_that_cannot_be_is_refused(tmp_path: Path) -> None:
    assert refused("org", "create", "  ", cwd=tmp_path) == (2, "NAME: 1-200 characters\n")
    said("db", "upgrade", cwd=tmp_path)
    assert refused("org", "set-tier", "org_none", "pro", cwd=tmp_path) == (
        1,
        "org_none: no such organisation; `reseller org list` names them\n",
    )
