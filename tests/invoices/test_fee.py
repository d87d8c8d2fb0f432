"""`reseller org set-fee`: the service's share of one organisation."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.reseller import printed, refused


@pytest.fixture
def organisation(tmp_path: Path) -> str:
    return printed("org", "create", "Small Reseller", "--tier", "pro", cwd=tmp_path).strip()


def kept(folder: Path) -> int | None:
    with closing(sqlite3.connect(folder / "data" / "service.db")) as database:
        [(rate,)] = database.execute("SELECT platform_fee_bps FROM organisation").fetchall()
    return rate


@pytest.mark.long
def test_a_fee_of_its_own_counts_until_it_is_the_one_of_all_again(tmp_path: Path, organisation: str) -> None:
    assert printed("org", "set-fee", organisation, "250", cwd=tmp_path) == f"{organisation} pays a platform fee of 250 basis points\n"
    assert kept(tmp_path) == 250
    assert printed("org", "set-fee", organisation, "0", cwd=tmp_path) == f"{organisation} pays a platform fee of 0 basis points\n"
    assert kept(tmp_path) == 0
    assert printed("org", "set-fee", organisation, "default", cwd=tmp_path) == f"{organisation} pays the platform fee of all\n"
    assert kept(tmp_path) is None


@pytest.mark.long
def test_a_change_is_in_the_audit_log_of_the_organisation(tmp_path: Path, organisation: str) -> None:
    printed("org", "set-fee", organisation, "5000", cwd=tmp_path)
    printed("org", "set-fee", organisation, "default", cwd=tmp_path)
    with closing(sqlite3.connect(tmp_path / "data" / "service.db")) as database:
        rows = database.execute("SELECT organisation, operation, outcome FROM audit WHERE operation = 'org_set_fee' ORDER BY id").fetchall()
    assert rows == [(organisation, "org_set_fee", "fee_5000"), (organisation, "org_set_fee", "fee_default")]


@pytest.mark.long
def test_what_is_no_fee_is_refused_and_changes_nothing(tmp_path: Path, organisation: str) -> None:
    for bps in ("5001", "-1", "1.5", "1%", "", "x", "99999999999", "\u0661"):
        code, text = refused("org", "set-fee", "--", organisation, bps, cwd=tmp_path)
        assert (code, "from 0 to 5000" in text, kept(tmp_path)) == (2, True, None), bps


@pytest.mark.long
def test_an_organisation_that_is_not_there_is_refused(tmp_path: Path, organisation: str) -> None:
    unknown = (1, "org_none: no such organisation; `reseller org list` names them\n")
    assert refused("org", "set-fee", "org_none", "100", cwd=tmp_path) == unknown
    assert kept(tmp_path) is None
