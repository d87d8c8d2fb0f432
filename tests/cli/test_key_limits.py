"""`reseller keys create` with limits, and `reseller keys explain`."""

from pathlib import Path

import orjson
import pytest

from tests.cli.reseller import refused, run_reseller
from tests.harness.processes import Running

COUNTS = ("--times", "create_connectivity_intent=12", "--times", "confirm_connectivity_intent=0")
LIMITS = ("--toolset", "connectivity", "--calls-per-day", "500", "--spend-per-day", "40 EUR", *COUNTS, "--approval", "irreversible")


@pytest.mark.long
def test_a_key_is_made_with_limits_and_its_worst_case_is_told_beside_the_secret(place: Path, server: Running) -> None:
    del server
    made = run_reseller("keys", "create", "agent", *LIMITS, cwd=place)
    assert made.returncode == 0 and made.stdout.startswith("ak_") and made.stdout.count("\n") == 1
    assert made.stderr.startswith("In a UTC day at most 500 calls, 12 lines, 40.00 EUR; ")
    listed = run_reseller("keys", "list", cwd=place).stdout.splitlines()[0].split("\t")
    assert listed[-1] == (
        "toolsets connectivity, 500 calls a day, 40.00 EUR a day, confirm_connectivity_intent 0 times a day, "
        "create_connectivity_intent 12 times a day, approval of irreversible"
    )
    told = run_reseller("keys", "explain", listed[0], cwd=place).stdout
    assert "at most 40.00 EUR a UTC day" in told and "spend_per_day: 0.00 EUR of 40.00 EUR used" in told and made.stderr in told
    whole = orjson.loads(run_reseller("keys", "explain", listed[0], "--json", cwd=place).stdout)
    assert whole["worst_case"]["lines"] == 12 and whole["worst_case"]["finite"] is True


@pytest.mark.parametrize(
    ("option", "given", "says"),
    [
        ("--spend-per-day", "40", 'write an amount with its currency, for example "40.00 EUR"'),
        ("--spend-per-call", "1.5 EUR", "--spend-per-call: got '1.5 EUR'"),
        ("--times", "create_connectivity_intent", "write an operation and a number"),
        ("--times", "nonesuch=1", "there is no such operation"),
        ("--approval", "always", "approval"),
    ],
)
def test_a_limit_that_cannot_be_is_explained(place: Path, server: Running, option: str, given: str, says: str) -> None:
    del server
    assert says in refused("keys", "create", "agent", option, given, cwd=place)[1]


def test_a_key_is_made_with_its_whole_answer_as_json_and_with_warnings_of_limits_without_effect(place: Path, server: Running) -> None:
    del server
    odd = ("--spend-per-call", "10 EUR", "--spend-per-day", "5 EUR", "--tag", "no-such-trucks")
    made = run_reseller("keys", "create", "odd", *odd, "--json", cwd=place)
    answer = orjson.loads(made.stdout)
    assert answer["secret"].startswith("ak_") and made.stderr == "" and len(answer["warnings"]) == 2
    made = run_reseller("keys", "create", "odd", *odd, cwd=place)
    assert made.stdout.startswith("ak_") and "warning: spend_per_call, 10.00 EUR, has no effect: spend_per_day is 5.00 EUR\n" in made.stderr
    assert "warning: No line has the tag no-such-trucks now" in made.stderr
