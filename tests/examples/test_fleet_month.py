"""The example of a line's month, run as a program against a network and a service, each in a process of its own."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.network import network
from tests.cli.reseller import printed
from tests.harness.processes import ROOT, running

SECRET = "whsec_YnJpZGdlLXNlY3JldC1mb3ItdGVzdHMtMDEyMw=="
DAY = 86_400


@pytest.mark.long
def test_the_months_figures_add_up_in_what_the_service_shows(tmp_path: Path) -> None:
    start = time.strftime("%Y-%m-%dT12:00:00", time.gmtime(time.time() - 31 * DAY))
    with network(tmp_path, "--clock", "frozen", "--start", start) as (control, _):
        wire = {"SERVICE_OCS_URL": f"{control.base_url}/v1", "SERVICE_OCS_TOKEN": "sandbox-7001-token"}
        with running(tmp_path / "data", {**wire, "SERVICE_BRIDGE_WEBHOOK_SECRET": SECRET}) as server:
            hook = f"{server.base_url}/v1/webhooks/bridge4ip?token={quote(SECRET, safe='')}"
            targets = {"resellerId": 7001, "usageUrl": hook, "esimUrl": hook, "locationUrl": hook}
            assert control.post("/control/push-targets", json=targets).status_code == 200
            printed("org", "connect", server.organisation, "--account", "8101", "--data", str(tmp_path / "data"), cwd=tmp_path)
            done = subprocess.run(
                [sys.executable, str(ROOT / "examples" / "fleet_month.py"), server.base_url, str(control.base_url)],
                env={**os.environ, "RESELLER_API_KEY": str(server.api_key)},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"line 89\d{17}: Europe weekly 1GB, 1024 MiB every week", lines[0])
    assert [re.sub(r"^\S+ +|,? charged.*", "", line) for line in lines[1:5]] == [
        "Norway      300 MiB used, 300 of the package, speed UNLIMITED",
        "France     1300 MiB used, 1024 of the package, speed UNLIMITED",
        "Germany     500 MiB used, 500 of the package, speed UNLIMITED",
        "Spain       200 MiB used, 200 of the package, speed UNLIMITED",
    ]
    assert "2300 MiB in" in done.stdout
    assert [re.sub(r".* (\d+ of 1024 MiB  \w+)$", r"\1", line) for line in lines if line.startswith("  package")] == [
        "300 of 1024 MiB  expired",
        "1024 of 1024 MiB  expired",
        "500 of 1024 MiB  expired",
        "200 of 1024 MiB  expired",
        "0 of 1024 MiB  running",
    ]
    assert lines[-2:] == ["  countries, newest first: ES DE FR NO", "the figures add up"]
