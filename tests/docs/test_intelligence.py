"""Every command of the page on composites and reports, in their order, against a service; and its names and figures are the code's."""

import json
import os
import re
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import httpx
import pytest

from clients.webhooks.sender import RETRY_DELAYS
from operations.catalogue import CATALOGUE
from operations.fleet.fleet_access import FIRST_LOOK_SECONDS
from operations.intelligence import churn_risk as churn_score
from operations.intelligence import fleet_health, usage_anomalies
from operations.intelligence.churn_risk import QUIET_CALENDAR_DAYS
from operations.intelligence.country_entry import PresenceState
from operations.intelligence.diagnosis.causes import CAUSE_RULES, SLOW_LIMIT_KBPS
from operations.intelligence.diagnosis.coverage_verdicts import COVERAGE_PROBLEMS, UNCOVERED_USE_DAYS
from operations.intelligence.diagnosis.steering_facts import SEEN_LATELY_DAYS
from operations.intelligence.lines.usage import CALENDAR_DAYS, inter_use_model, silence_odds
from operations.intelligence.marketing_intelligence import PACKAGE_SAMPLE_LINES, SMALLEST_GROUP
from operations.intelligence.money.advice import AdviceReason, CoverageAction
from operations.intelligence.money.bills import PARETO_PERCENT
from operations.intelligence.money.steering_advice import LEADING_ODDS, LEADING_SHARE, PUSH_PAUSE_SECONDS
from operations.intelligence.offers import plans as package_cover
from operations.intelligence.offers import upsell as line_habits
from operations.intelligence.offers.offers import NEED_MARGIN_PERCENT
from operations.intelligence.offers.plans import PlanVerdict
from operations.intelligence.offers.upsell import HALF_USED_SHARE, NEARLY_USED_SHARE, UpsellKind
from operations.intelligence.reports.redaction import IDENTIFIER_NUMBER
from operations.intelligence.reports.sheet import Finding, SheetKind
from operations.intelligence.schedule_reports import NOTICE_FIGURES, REPORT_LEASE_SECONDS, REPORT_PAUSES, REPORT_TRIES, SHEETS
from operations.intelligence.schedules import REPORT_WINDOW_DAYS, SCHEDULE_INTERVAL_MINUTES
from operations.intelligence.usage_anomalies import SPIKE_BYTES_MINIMUM, SPIKE_COST_MINIMUM, AnomalyKind
from operations.intelligence.verdicts.country_stays import VISIT_GAP_DAYS
from operations.intelligence.verdicts.rules import DAYS_BEFORE_LEAVING, FEWEST_DAYS_AT_HOME, THERE_SHARE
from operations.times import RANGE_DAYS_LIMIT
from registry.limits import Limits
from storage.fleet_usage import KEPT_USAGE_DAYS
from storage.line_changes import LINE_CHANGES_KEPT_SECONDS
from storage.line_steering import LINE_STEERING_KEPT_SECONDS
from storage.schedule_reports import EVENTS_KEPT_SECONDS, REPORTS_KEPT, RUNS_PER_HOUR
from storage.schedules import MOST_SCHEDULES
from storage.webhook_endpoints import FAILING_SECONDS
from tests.cli.hook import listening
from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, find, other_blocks, shell
from tests.docs.test_simulated_network import port_of_a_run
from tests.harness.processes import ROOT, Running

PAGE = "intelligence.md"
FIRST, SCHEDULE, READ, DELETE = STARTS = (
    'curl -s "$RESELLER_URL/v1/intelligence/fleet-health"',
    "told()",
    "report=$(reseller call run_intelligence_schedule",
    "reseller call delete_intelligence_schedule",
)
COMPOSITES = [*(name for name in SHEETS if name != "fleet_problems"), "detect_country_entry"]
"""Those of this page; docs/fleet.md has the other one."""


def page() -> str:
    return (ROOT / "docs" / PAGE).read_text()


def section(name: str) -> str:
    return page().split(f"\n## {name}\n")[1].split("\n## ")[0]


def missing(names: Iterable[str], text: str) -> list[str]:
    return [name for name in names if f"`{name}`" not in text]


@pytest.mark.long
def test_the_first_commands_of_the_page_answer_findings(place: Path, server: Running) -> None:
    said, decoder, found = done(place, find(FIRST, PAGE), **as_reader(server)), json.JSONDecoder(), list[dict[str, Any]]()
    while said.strip():
        answer, end = decoder.raw_decode(said.lstrip())
        found.append(answer)
        said = said.lstrip()[end:]
    whole = [*get_type_hints(Finding)]
    assert [{*each} for each in found] == [{*whole}, {*whole}, {*whole} - {"as_of"}]
    assert missing(found[0], page()) == []
    assert [each["of"] for each in found] == [140, 140, 1]
    assert len(found[1]["data"]["lines"]) == 3


@pytest.mark.long
def test_a_schedule_tells_a_receiver_is_read_behind_its_link_and_deleted_with_it(place: Path, server: Running) -> None:
    text = (find(SCHEDULE, PAGE) + find(READ, PAGE)).replace("8080", str(port_of_a_run()))
    ending = "trap 'kill $(jobs -p)' EXIT\n"  # with a command that fails the receiver ends, and so does what is read here
    with shell(place, ending + text + '\nprintf "\\nmade %s %s %s\\n" "$schedule" "$link" "$report"; wait', **as_reader(server)) as process:
        assert process.stdout is not None
        try:
            lines = list[str]()
            while not any(line.startswith("made ") for line in lines) or not any(line.startswith("intelligence.report ") for line in lines):
                lines.append(next(process.stdout))
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate(timeout=60)
    said = "".join(lines)
    [(schedule, link, report)] = re.findall(r"^made (sch_\w+) (\S+) (rep_\w+)$", said, re.MULTILINE)
    assert re.findall(r"^intelligence.report evt_\w+ (\w+)$", said, re.MULTILINE) == [report]
    assert '"state": "done"' in said and '"organization":' in said and '"ready":true' in said
    assert link.startswith(f"{server.base_url}/v1/intelligence/share/")
    assert "<title>" in (place / "report.html").read_text()
    gone = done(place, find(DELETE, PAGE), schedule=schedule, link=link, **as_reader(server))
    assert '"deleted": true' in gone and '"There is no report at this link' in gone


@pytest.mark.long
def test_what_a_webhook_is_told_looks_as_the_page_shows_it(server: Running) -> None:
    [shown] = [json.loads(block.text) for block in blocks("json", document=PAGE)]
    headers = {"Authorization": f"Bearer {server.api_key}"}
    with listening() as hook, httpx.Client(base_url=server.base_url, headers=headers, timeout=60) as http:
        wanted = {"composite": "fleet_health", "cron": "0 5 * * *", "webhook_url": hook.url}
        schedule = http.post("/v1/intelligence/schedules", json=wanted).json()["id"]
        http.post(f"/v1/intelligence/schedules/{schedule}/run").raise_for_status()
        status, _, body = hook.seen.get(timeout=60)
        http.delete(f"/v1/intelligence/schedules/{schedule}").raise_for_status()
    told = json.loads(body)
    assert status == 204
    assert told["data"].pop("boundary") is None  # somebody asked for it
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", shown["data"].pop("boundary"))
    assert shape(told) == shape(shown)
    assert (told["type"], told["object"]) == (shown["type"], shown["object"])


def shape(value: object) -> object:
    """Members and what kind of value each has: ids by their prefix, lists by their first row."""
    if isinstance(value, dict):
        return {name: shape(field) for name, field in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [shape(cast("list[object]", value)[0])]
    if isinstance(value, str):
        found = re.match(r"(evt|sch|rep)_", value)
        return found[0] if found else "a text"
    return "a number" if isinstance(value, int | float) and not isinstance(value, bool) else value


def test_every_command_of_the_page_is_run() -> None:
    assert other_blocks(PAGE, *STARTS) == []


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_section_of_a_composite_names_every_member_of_its_answer(name: str) -> None:
    [data] = get_args(CATALOGUE.operations[name].result)
    members = {member for part in get_args(data) or (data,) for member in get_type_hints(part)}
    assert missing(sorted(members), section(name)) == []


def test_the_page_names_every_composite_and_has_a_section_for_each() -> None:
    asked = re.findall(r"^\| `(\w+)` \| [A-Z].*\? \|$", page(), re.MULTILINE)
    assert sorted(asked) == sorted(COMPOSITES)
    assert re.findall(r"^## (\w+_\w+)$", page(), re.MULTILINE) == asked


def test_the_words_of_the_page_are_those_of_the_code() -> None:
    told = {
        "fleet_health": (
            *get_args(fleet_health.HealthAction),
            "idle_share",
            "never_used_share",
            "suspended_share",
            "stock_days",
            "balance_days",
        ),
        "churn_risk": ("high", "medium", *churn_score.CHURN_SENTENCES),
        "detect_usage_anomalies": get_args(AnomalyKind),
        "audit_network_coverage": (*COVERAGE_PROBLEMS, "covered", "not_seen_lately", *get_args(CoverageAction)),
        "marketing_intelligence": (*line_habits.SEGMENT_RULES, *get_args(UpsellKind)),
        "optimize_package": get_args(PlanVerdict),
        "detect_country_entry": get_args(PresenceState),
    }
    assert {name: gone for name, words in told.items() if (gone := missing(words, section(name)))} == {}
    shown = re.findall(r"^\| `(\w+)` \|", section("diagnose_subscriber"), re.MULTILINE)
    assert shown == [*CAUSE_RULES, "healthy", "undetermined"]
    assert missing((*get_args(CoverageAction), *get_args(AdviceReason)), section("Money")) == []
    assert missing(get_args(SheetKind), page().split("### What strangers see")[1]) == []


def test_the_points_of_the_page_are_those_of_the_code() -> None:
    rules = {
        "idle_share": fleet_health.IDLE_RULE,
        "never_used_share": fleet_health.UNUSED_RULE,
        "suspended_share": fleet_health.SUSPENDED_RULE,
    }
    rows = re.findall(r"^\| `(\w+)`.*? \| (\d+) \| (\d+) (?:%|days)", section("fleet_health"), re.MULTILINE)
    assert {name: (float(most), float(at)) for name, most, at in rows} == {
        **{name: (rule.points, 100 * rule.all_at) for name, rule in rules.items()},
        "stock_days": (fleet_health.STOCK_POINTS, 0),
        "balance_days": (fleet_health.BALANCE_POINTS, 0),
    }
    most = (
        churn_score.SILENCE_POINTS_LIMIT,
        churn_score.TREND_POINTS_LIMIT,
        churn_score.PACKAGE_POINTS_LIMIT,
        churn_score.STATUS_POINTS,
        churn_score.NO_BALANCE_POINTS,
    )
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", section("churn_risk"), re.MULTILINE)
    assert [(name, float(points)) for name, points in rows] == list(zip(churn_score.CHURN_SENTENCES, most, strict=True))


def test_the_odds_of_silence_that_the_page_gives_are_those_that_come_out() -> None:
    daily, traveller = [True] * 28, [True] * 7 + [False] * 14 + [True] * 7
    assert round(1 / silence_odds(inter_use_model(daily), 5), -3) == 9000
    assert round(silence_odds(inter_use_model(traveller), 5), 1) == 0.3
    told = " ".join(section("churn_risk").split())
    assert "28 days of daily use have odds of 1 in 9,000;" in told and "between two weeks of use, 3 in 10." in told


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    bands, limits = churn_score.CHURN_BANDS, Limits()
    told = (
        (MOST_SCHEDULES, "an organisation has at most 50", 50),
        (SCHEDULE_INTERVAL_MINUTES, "at least 15 minutes between two", 15),
        (REPORT_WINDOW_DAYS, "looks at the last 28 whole UTC days", 28),
        (REPORT_LEASE_SECONDS, "when its lease ends, after 3 minutes", 180),
        ((REPORT_TRIES, REPORT_PAUSES), "tried three times, after one minute and after five", (3, (60, 300))),
        (RUNS_PER_HOUR, "Six an hour", 6),
        (len(RETRY_DELAYS), "the same ten attempts", 10),
        (NOTICE_FIGURES, "are at most eight", 8),
        (EVENTS_KEPT_SECONDS, "forgotten after 30 days", 30 * 86_400),
        (FAILING_SECONDS, "or failed for 120 hours", 120 * 3600),
        (REPORTS_KEPT, "keeps the latest 30 reports", 30),
        (limits.misses_per_minute, "ten a minute from one address", 10),
        (IDENTIFIER_NUMBER, "from 100 TB on", 100 * 10**12),
        (fleet_health.TODO_LIMIT, "`first` has at most three things", 3),
        (fleet_health.HEALTHY_DAYS, "from 60 days", 60),
        (FIRST_LOOK_SECONDS, "waits 20 seconds at most", 20),
        (KEPT_USAGE_DAYS, "which keeps 90 days of every line", 90),
        ((VISIT_GAP_DAYS, FEWEST_DAYS_AT_HOME), "fewer than ten such days", (14, 10)),
        ((THERE_SHARE, DAYS_BEFORE_LEAVING), "on 5 % or less of its days with a sighting in the 56 days before", (0.05, 56)),
        (LINE_CHANGES_KEPT_SECONDS, "in the last 400 days", 400 * 86_400),
        (PACKAGE_SAMPLE_LINES, "at most 2,000 lines are read", 2000),
        ((line_habits.MACHINE_DAYS, line_habits.MACHINE_BYTES), "on 4 days or more, at most 2 MB", (4, 2_000_000)),
        ((line_habits.HEAVY_BYTES, line_habits.HEAVY_MEDIANS), "at least 1 GB, and at least 4 times", (10**9, 4)),
        ((line_habits.TRAVEL_COUNTRIES, line_habits.TRAVEL_DAYS), "in 3 countries, or 7 days", (3, 7)),
        ((NEARLY_USED_SHARE, HALF_USED_SHARE), "where 90 % of its current packages", (0.9, 0.5)),
        (SMALLEST_GROUP, "fewer than five lines are merged", 5),
        (RANGE_DAYS_LIMIT, "both included, at most 92", 92),
        (PARETO_PERCENT, "make 80 % of the network cost", 80),
        (NEED_MARGIN_PERCENT, "with 10 % more", 10),
        (package_cover.COVER_PACKAGE_LIMIT, "at most 60 packages", 60),
        (package_cover.COVER_PLACE_LIMIT, "more than ten different places", 10),
        (package_cover.COVER_STEP_LIMIT, "after 20,000 steps", 20_000),
        ((SEEN_LATELY_DAYS, UNCOVERED_USE_DAYS), "seen in the last 7 days", (7, 28)),
        ((LEADING_SHARE, LEADING_ODDS), "at least three quarters of the list's lines", (0.75, 0.05)),
        (PUSH_PAUSE_SECONDS, "pushed in the last 24 hours", 24 * 3600),
        (LINE_STEERING_KEPT_SECONDS, "it keeps that for 30 days", 30 * 86_400),
        (SLOW_LIMIT_KBPS, "below 10,240", 10_240),
        ((bands["high"], bands["medium"]), "`high` begins at 50, `medium` at 30", (50, 30)),
        ((CALENDAR_DAYS, QUIET_CALENDAR_DAYS), "for 56 when it has been quiet", (28, 56)),
        ((churn_score.EXPECTED_SILENCE_ODDS, churn_score.UNUSUAL_SILENCE_ODDS), "at odds of 3 in 10, all at 1 in 100", (0.3, 0.01)),
        ((churn_score.CHURN_PAUSE_SHARE, churn_score.CHURN_PAUSE_DAYS), "two fifths of them", (0.4, 14)),
        ((churn_score.STEADY_TREND, churn_score.FALLING_TREND), "from 5 % a week on, all at 30 %", (0.05, 0.3)),
        (usage_anomalies.SPIKE_THRESHOLD, "2.8 robust standard deviations", 2.8),
        (usage_anomalies.FALSE_SPIKES_PER_1000, "Of normal values 2.6 in 1,000", 2.6),
        (SPIKE_BYTES_MINIMUM, "at least a megabyte more", 10**6),
        (SPIKE_COST_MINIMUM, "at least ten euros more", 10 * 10**6),
        (usage_anomalies.SILENCE_ODDS_LIMIT, "odds of at most 1 in 1,000", 0.001),
        (usage_anomalies.REGULAR_USE_SHARE, "used on half of its days", 0.5),
    )
    text = " ".join(page().split())
    assert [words for number, words, meant in told if number != meant or words not in text] == []
