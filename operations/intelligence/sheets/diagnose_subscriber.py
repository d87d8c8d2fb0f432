"""The report of diagnose_subscriber."""

from operations.intelligence.diagnose_subscriber import Diagnosis, Evidence, FoundCause, LineNow
from operations.intelligence.diagnosis.rules import Cause
from operations.intelligence.finding import Finding
from operations.intelligence.sheet import Figure, Kind, Sheet, Table, Value

SAID: dict[Cause, str] = {
    "status_not_active": "The line is not active.",
    "data_not_allowed": "Data is switched off for the line.",
    "sim_in_stock": "The SIM is in stock, not in use.",
    "profile_not_installed": "The eSIM profile is not installed yet.",
    "profile_disabled": "The eSIM profile is switched off in the device.",
    "profile_deleted": "The eSIM profile was deleted from the device.",
    "no_package": "The line has no package with data.",
    "package_not_started": "The package begins later.",
    "package_expired": "The packages have expired.",
    "package_exhausted": "The package is used up.",
    "package_blocked": "The package is blocked.",
    "zone_not_covering": "The package does not cover the network that the line is on.",
    "throttled": "The line is slowed down.",
    "balance_empty": "The balance is empty.",
    "registrations_rejected": "Networks refuse the line.",
    "never_attached": "The line was never seen on a network.",
    "healthy": "Nothing is wrong with the line.",
    "undetermined": "Not everything could be read, and nothing wrong was seen.",
}


def sheet(found: Finding[Diagnosis]) -> Sheet:
    """The first cause, and what speaks for it."""
    data = found["data"]
    return {
        "title": "Diagnosis of a line",
        "headline": SAID[data["first_cause"]],
        "figures": figures(data["line"]),
        "charts": [],
        "tables": [causes(data), evidence(data), subject(data)],
    }


def figures(line: LineNow) -> list[Figure]:
    """The line as it is; what could not be read is left out."""
    told: list[tuple[str, Kind, Value]] = [
        ("Status", "word", line["status"].replace("_", " ")),
        ("Country", "country", line["country"]),
        ("Network", "network", None if line["network"] is None else f"{line['network']['mcc']}-{line['network']['mnc']}"),
        ("Last seen", "day", None if line["seen"] is None else line["seen"][:10]),
        ("Data left", "bytes", line["data_left"]),
        ("Data used in 7 days", "bytes", line["used_bytes"]),
        ("Charged in 7 days", "money", line["charged"]),
        ("Balance", "money", line["balance"]),
        ("Speed limit, kbit/s", "number", line["speed_limit_kbps"]),
    ]
    return [{"label": label, "kind": kind, "value": value} for label, kind, value in told if value is not None]


def causes(data: Diagnosis) -> Table:
    """What is wrong, in the order in which to mend it."""
    return {
        "title": "Causes",
        "columns": [
            {"label": "Cause", "kind": "word"},
            {"label": "Effect", "kind": "word"},
            {"label": "Rules that hold", "kind": "number"},
            {"label": "Rules judged", "kind": "number"},
            {"label": "Next step", "kind": "word"},
        ],
        "rows": [cause_row(cause) for cause in data["causes"]],
        "note": None,
    }


def cause_row(cause: FoundCause) -> list[Value]:
    """One cause; the next step is the first."""
    confidence, steps = cause["confidence"], cause["next_steps"]
    words = [cause["cause"].replace("_", " "), cause["effect"].replace("_", " ")]
    return [*words, confidence["fired"], confidence["of"], steps[0]["operation"] if steps else None]


def evidence(data: Diagnosis) -> Table:
    """What was seen. The values are the charging system's, and not for strangers."""
    return {
        "title": "Evidence",
        "columns": [
            {"label": "Cause", "kind": "word"},
            {"label": "Rule", "kind": "word"},
            {"label": "Value", "kind": "text"},
            {"label": "Since", "kind": "day"},
        ],
        "rows": [[cause["cause"].replace("_", " "), *evidence_row(row)] for cause in data["causes"] for row in cause["evidence"]],
        "note": None,
    }


def evidence_row(row: Evidence) -> list[Value]:
    """One rule."""
    value = row["value"]
    return [row["rule"].replace("_", " "), None if value is None else str(value), None if row["at"] is None else row["at"][:10]]


def subject(data: Diagnosis) -> Table:
    """Which line it is."""
    profile, network = data["line"]["profile"], data["line"]["network"]
    return {
        "title": "The line",
        "columns": [{"label": "Line", "kind": "line"}, {"label": "Profile", "kind": "text"}, {"label": "Operator", "kind": "text"}],
        "rows": [[data["iccid"], profile, None if network is None else network.get("operator")]],
        "note": None,
    }
