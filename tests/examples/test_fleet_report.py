"""The example of a report, run as a program against a service on the embedded default."""

import re
import subprocess
import sys

import httpx
import pytest
from inline_snapshot import snapshot

from operations.intelligence.schedule_reports import SHEETS
from tests.examples.conftest import command, program
from tests.harness.processes import ROOT, Child, Running

SECRETS = re.compile(r"ak_|whsec_|sch_|rep_|/share/|89\d{15}|LPA:|Bearer")


def reported(server: Running, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return program("fleet_report.py", server.base_url, *words, **{"RESELLER_API_KEY": str(server.api_key), **environment})


def schedules(server: Running) -> list[dict[str, object]]:
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}) as http:
        return http.get("/v1/intelligence/schedules").json()["data"]


@pytest.mark.long
def test_a_report_is_made_shown_and_deleted_and_what_opens_it_is_not_printed(server: Running) -> None:
    done = program("fleet_report.py", *command("fleet_report", server), RESELLER_API_KEY=str(server.api_key))
    assert done.returncode == 0, done.stdout + done.stderr
    assert SECRETS.findall(done.stdout + done.stderr) == []
    lines = [line for line in done.stdout.splitlines() if not line.startswith("missing: ")]  # a line may have been used just now
    assert [masked(line) for line in lines] == snapshot(
        [
            "every Monday, next on #-#-#T#:#:#Z",
            "Fleet health: The fleet scores # of #: # of # issued lines were used in # days. First: ...",
            "  Score: #",
            "  Issued lines: ...",
            "  Used in # days: #",
            "  Used in # days: #",
            "  Never used: #",
            "  Silent for # days: #",
            "  Suspended: #",
            "  In stock: #",
            "looked into # of # lines: ...",
            "its page: Fleet health · Demo Telecom",
            "deleted; the link answers 404",
        ]
    )
    assert schedules(server) == []


def masked(line: str) -> str:
    """Without what depends on the day: the simulated network ends now."""
    shown = re.sub(r"\d+(\.\d+)?", "#", line) if not line.startswith("deleted") else line
    return re.sub(r"(First|lines): .*", r"\1: ...", shown)


@pytest.mark.long
def test_without_delete_the_link_is_printed_and_lives_until_enter_is_pressed(server: Running) -> None:
    words = [sys.executable, str(ROOT / "examples" / "fleet_report.py"), server.base_url]
    pipe = subprocess.PIPE
    given = {"RESELLER_API_KEY": str(server.api_key), "PYTHONUNBUFFERED": "1"}
    with Child(words, env=given, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        link = next(line.strip() for line in process.stdout if line.startswith(server.base_url))
        page = httpx.get(link)
        out, _ = process.communicate("\n", timeout=60)
    assert re.search("/v1/intelligence/share/[^/]+[?]format=html$", link)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<h1" in page.text and re.search(r"89\d{15}", page.text) is None
    assert out.endswith("deleted; the link answers 404\n")
    assert httpx.get(link).status_code == 404
    assert schedules(server) == []


@pytest.mark.long
def test_a_wrong_key_and_an_unknown_composite_are_taught(server: Running) -> None:
    wrong = reported(server, RESELLER_API_KEY="ak_wrong")
    unknown = reported(server, "--composite", "fleet_wealth")
    assert [(each.returncode, each.stdout) for each in (wrong, unknown)] == [(1, "")] * 2
    assert wrong.stderr.startswith("/v1/intelligence/schedules: The API key is unknown, expired or revoked. Make one at ")
    assert "ak_wrong" not in wrong.stderr
    assert unknown.stderr.startswith('/v1/intelligence/schedules: composite: got "fleet_wealth"; must be one of ')
    assert [name for name in SHEETS if f"'{name}'" not in unknown.stderr] == []


def test_a_report_that_fails_says_why_and_leaves_no_schedule(server: Running) -> None:
    done = reported(server, "--delete", "--composite", "diagnose_subscriber")
    assert done.returncode == 1
    assert "iccid" in done.stderr
    assert schedules(server) == []
