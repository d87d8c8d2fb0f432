"""SERVICE_LIMITS_FREE and its like: what a tier may use is a setting, and so is what nobody has set shown."""

from pathlib import Path

import pytest

from registry.caller import Tier
from registry.limits import TIERS, TierLimits
from tests.cli.reseller import printed
from transports.settings import BadSettings
from transports.settings_files import load_settings
from transports.version import build_sha

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_limit_that_is_named_changes_and_the_others_stay() -> None:
    tiers = load_settings({"SERVICE_LIMITS_PRO": "calls_per_day=90000, burst_size=75"}).tiers
    assert tiers == {**TIERS, Tier.PRO: TierLimits(90_000, 25, 75, 200)}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("calls=1", "is no limit; there are calls_per_day, burst_per_second, burst_size, ai_calls_per_day"),
        ("calls_per_day=0", "calls_per_day must be a whole number from 1 to 1000000000"),
        ("burst_size=-1", "burst_size must be a whole number"),
        ("burst_per_second=1e3", "burst_per_second must be a whole number"),
        ("calls_per_day", "calls_per_day must be a whole number"),
    ],
)
def test_what_is_no_limit_stops_the_start_and_is_named(given: str, why: str) -> None:
    with pytest.raises(BadSettings, match=f"^SERVICE_LIMITS_FREE: .*{why}"):
        load_settings({"SERVICE_LIMITS_FREE": given})


def test_doctor_says_which_limits_authorities_and_proxies_are_unset(tmp_path: Path) -> None:
    shown = printed("doctor", cwd=tmp_path, SERVICE_PORT="0", SERVICE_LIMITS_PRO="calls_per_day=90000")
    assert (
        "limits     free: 1000 calls a day, 5 a second (10 at once), 10 questions to a model a day; SERVICE_LIMITS_FREE is unset\n" in shown
    )
    assert "limits     pro: 90000 calls a day, 25 a second (50 at once), 200 questions to a model a day\n" in shown
    assert "SERVICE_CA_FILE is unset\n" in shown
    assert "10.0.0.0/8\n" in printed("doctor", cwd=tmp_path, SERVICE_PORT="0", SERVICE_TRUSTED_PROXIES="10.0.0.0/8")


def test_doctor_notes_a_trusted_proxy_without_the_address_that_it_serves(tmp_path: Path) -> None:
    proxied = {"SERVICE_PORT": "0", "SERVICE_TRUSTED_PROXIES": "10.0.0.0/8"}
    assert "\nnote proxies    SERVICE_BASE_URL is empty: " in printed("doctor", cwd=tmp_path, **proxied)
    assert "SERVICE_BASE_URL is empty" not in printed("doctor", cwd=tmp_path, **proxied, SERVICE_BASE_URL="https://esim.example")
    assert "SERVICE_BASE_URL is empty" not in printed("doctor", cwd=tmp_path, SERVICE_PORT="0")


@pytest.mark.parametrize("where", ["loose", "packed", "detached", "worktree"])
def test_the_build_of_a_checkout_is_its_commit(where: str, tmp_path: Path) -> None:
    git = tmp_path / ("checkout/.git" if where != "worktree" else "main/.git")
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text(f"{COMMIT}\n" if where == "detached" else "ref: refs/heads/main\n")
    if where == "packed":
        (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{COMMIT} refs/heads/main\n")
    elif where != "detached":
        (git / "refs/heads/main").write_text(f"{COMMIT}\n")
    root = tmp_path / "checkout"
    if where == "worktree":
        apart = git / "worktrees/checkout"
        apart.mkdir(parents=True)
        (apart / "HEAD").write_text("ref: refs/heads/main\n")
        (apart / "commondir").write_text("../..\n")
        root.mkdir()
        (root / ".git").write_text(f"gitdir: {apart}\n")
    assert build_sha("unknown", root) == COMMIT[:12]
    assert build_sha("release-7", root) == "release-7"


def test_the_build_of_what_is_no_checkout_is_unknown(tmp_path: Path) -> None:
    assert build_sha("unknown", tmp_path) == "unknown"
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: ../../etc/passwd\n")
    assert build_sha("unknown", tmp_path) == "unknown"
