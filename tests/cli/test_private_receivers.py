"""`reseller org allow-private`: receivers in the operator's own network, for named organisations alone."""

import json
from pathlib import Path

import pytest

from tests.cli.reseller import printed, refused, run_reseller

INSIDE = {"SERVICE_WEBHOOK_PRIVATE": "10.20.0.0/16,hooks.corp.internal"}
CREATE = ("call", "create_connectivity_webhook_endpoint", "--input-url")


@pytest.mark.long
def test_only_a_named_organisation_registers_a_receiver_inside_and_the_refusal_says_what_works(tmp_path: Path) -> None:
    named, other = [printed("org", "create", name, "--email", f"{name}@acme.example", cwd=tmp_path).strip() for name in ("named", "other")]
    assert printed("org", "allow-private", named, cwd=tmp_path) == f"{named} may have webhooks where SERVICE_WEBHOOK_PRIVATE says\n"
    for url in ("https://10.20.0.9/hook", "https://hooks.corp.internal/hook"):
        made = json.loads(printed(*CREATE, url, "--org", named, cwd=tmp_path, **INSIDE))
        assert made["url"] == url
        for organisation, settings in ((other, INSIDE), (named, {})):
            done = run_reseller(*CREATE, url, "--org", organisation, cwd=tmp_path, **settings)
            assert done.returncode != 0
            assert "SERVICE_WEBHOOK_PRIVATE" in done.stdout + done.stderr and "allow-private" in done.stdout + done.stderr
    for url in ("https://127.0.0.1/h", "https://169.254.169.254/h", "https://10.21.0.1/h", "http://10.20.0.9/h"):
        assert run_reseller(*CREATE, url, "--org", named, cwd=tmp_path, **INSIDE).returncode != 0
    assert printed("org", "allow-private", named, "--off", cwd=tmp_path) == f"{named} has webhooks at public addresses only\n"
    assert run_reseller(*CREATE, "https://10.20.0.9/hook", "--org", named, cwd=tmp_path, **INSIDE).returncode != 0
    assert "org_allow_private" in printed("audit", "--org", named, cwd=tmp_path)
    assert refused("org", "allow-private", "org_none", cwd=tmp_path)[0] == 1


def test_a_setting_that_would_open_more_than_private_networks_stops_the_start(tmp_path: Path) -> None:
    code, message = refused("org", "list", cwd=tmp_path, SERVICE_WEBHOOK_PRIVATE="10.20.0.0/16,127.0.0.0/8")
    assert code == 2
    assert message.startswith("SERVICE_WEBHOOK_PRIVATE: entry 2, 127.0.0.0/8, must lie in 10.0.0.0/8, 172.16.0.0/12")
