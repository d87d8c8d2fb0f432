"""How right the composites are that judge behaviour: lines that churn, and days that are unlike the others."""

from benchmarks.intelligence_ask import Answer, Asker
from benchmarks.intelligence_reference import Reference, number_of
from benchmarks.intelligence_scores import Score, score


async def churn(ask: Asker, world: Reference) -> list[Score]:
    """Against what happens in the four weeks that follow. What is not active has no use to lose, and is in no figure.

    k is how many lines will show no use; the threshold is the composite's own band `high`.
    """
    truth = world.planted.truth
    gone, known = world.mine(truth.gone), world.mine((*truth.gone, *truth.staying))
    ranked = [row for row in await ask.rows("churn-risk", "lines", {"limit": 500}) if row["iccid"] in known]
    first = [row["iccid"] for row in ranked[: len(gone)]]
    high = [row["iccid"] for row in ranked if row["band"] == "high"]
    warned = {row["iccid"] for row in ranked if row["band"] != "low"}
    planted = sorted(world.mine(truth.churn))
    shown = {row["iccid"]: row for row in ranked}
    name = "churn_risk"
    return [
        score(name, "precision at k", [(why(iccid, shown, world), iccid in gone) for iccid in first]),
        score(name, "high: precision", [(why(iccid, shown, world), iccid in gone) for iccid in high]),
        score(name, "high: recall", [(why(iccid, shown, world), iccid in high) for iccid in sorted(gone)]),
        score(name, "high: recall of planted", [(why(iccid, shown, world), iccid in high) for iccid in planted]),
        score(name, "high, medium: precision", [(why(iccid, shown, world), iccid in gone) for iccid in sorted(warned)]),
        score(name, "high, medium: recall", [(why(iccid, shown, world), iccid in warned) for iccid in sorted(gone)]),
    ]


def why(iccid: str, shown: dict[str, Answer], world: Reference) -> str:
    """A line with its score, its last use and what was planted there."""
    row = shown.get(iccid)
    told = "not scored" if row is None else f"{row['score']:.0f}, last use {row['last_use']}"
    return f"{iccid} ({told}; {world.part_of(iccid)})"


async def anomalies(ask: Asker, world: Reference) -> list[Score]:
    """By line and day. What is told of a day that an operator would call a spike or a silence is right, whether or not it was planted.

    A day that was meant as a spike and did not become one is neither right nor wrong. Costs are judged as bytes are.
    """
    truth = world.planted.truth
    told = [row for row in await ask.rows("detect-usage-anomalies", "anomalies", {"limit": 500}) if not is_faint(row, world)]
    spikes = {(iccid, day.isoformat()) for iccid in world.mine(truth.spikes) for day in truth.spikes[iccid]}
    said = {(row["iccid"], row["day"]) for row in told if row["kind"] != "silence"}
    name = "detect_usage_anomalies"
    scores = [
        score(name, f"{kind}: precision", [(told_of(row, world), is_true(row, world)) for row in told if row["kind"] == kind])
        for kind in ("spike", "cost", "silence")
    ]
    silences = {iccid: {day.isoformat() for day in truth.silences[iccid]} for iccid in world.mine(truth.silences)}
    found = {iccid: any(row["iccid"] == iccid and covers(row, days) for row in told) for iccid, days in silences.items()}
    return [
        *scores,
        score(name, "precision", [(told_of(row, world), is_true(row, world)) for row in told]),
        score(
            name,
            "spikes: recall",
            [(f"{iccid} {day} {world.spike_told(iccid, day)}", (iccid, day) in said) for iccid, day in sorted(spikes)],
        ),
        score(name, "silences: recall", [(f"{iccid} {len(silences[iccid])} days", right) for iccid, right in sorted(found.items())]),
    ]


def is_faint(row: Answer, world: Reference) -> bool:
    """Whether the day was meant as a spike and did not become one."""
    return any(day.isoformat() == row["day"] for day in world.planted.truth.faint.get(row["iccid"], ()))


def covers(row: Answer, days: set[str]) -> bool:
    """Whether a silence that is told has one of the days."""
    first = number_of(row["day"])
    return row["kind"] == "silence" and any(0 <= number_of(day) - first < row["observed"] for day in days)


def is_true(row: Answer, world: Reference) -> bool:
    """Whether an operator would call it so."""
    if row["kind"] == "silence":
        return world.is_silence(row["iccid"], row["day"])
    return world.is_spike(row["iccid"], row["day"], money=row["kind"] == "cost")


def told_of(row: Answer, world: Reference) -> str:
    """An anomaly, and what was planted on its line."""
    observed = f"{row['kind']} {row['observed']:.3g} {row['unit']}, score {row['score']}"
    return f"{row['iccid']} {row['day']} {observed} ({world.part_of(row['iccid'])})"
