"""A real server: its worker makes what is asked for and tells the webhook; the command line shows what is shown once."""

import json
from pathlib import Path

import httpx
import pytest

from tests.cli.hook import listening
from tests.cli.reseller import run_reseller
from tests.harness.processes import running


@pytest.mark.long
def test_a_server_makes_a_report_of_its_fleet_and_tells_the_webhook(tmp_path: Path) -> None:
    with running(tmp_path / "data", {"SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8"}) as server, listening() as hook:
        there = {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}
        words = ("call", "create_intelligence_schedule", "--composite", "fleet_health", "--cron", "0 6 * * *", "--share")
        made = run_reseller(*words, "--webhook-url", hook.url, cwd=tmp_path, **there)
        assert made.returncode == 0, made.stderr
        schedule = json.loads(made.stdout)
        assert schedule["share_url"].startswith(f"{server.base_url}/v1/intelligence/share/")
        with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}, timeout=60) as http:
            asked = http.post(f"/v1/intelligence/schedules/{schedule['id']}/run").json()
            assert asked["state"] == "waiting"
            hook.take(schedule["secret"])
            report = http.get(f"/v1/intelligence/schedules/{schedule['id']}/report").json()
    assert (report["id"], report["state"], report["error"]) == (asked["id"], "done", None)
    assert report["finding"]["of"] > 0
    assert report["sheet"]["title"]
