"""What a draw costs does not grow with what the organisation has drawn before."""

import sqlite3
from contextlib import closing
from pathlib import Path

from storage.engine.sql import sqlite_dialect
from storage.issuance import unresolved_like
from tests.databases import migrated_sqlite
from tests.storage.test_all_statements import statement_of

ASKED = ("organisation", "principal", "account_id", "template_id", "since", "key")


def test_the_look_for_another_unknown_key_reads_open_rows_of_the_account_only(tmp_path: Path) -> None:
    path = migrated_sqlite(tmp_path).removeprefix("sqlite:///")
    text = statement_of(unresolved_like).text(sqlite_dialect())
    with closing(sqlite3.connect(path)) as raw:
        plan = raw.execute(f"explain query plan {text.sql}", {**text.literals, **dict.fromkeys(ASKED, 1)}).fetchall()
    assert plan[0][3] == "SEARCH issuance USING INDEX issuance_account (account_id=? AND state=?)"
