"""A report about the fleet: made by a schedule, read here, and shown to somebody without an account. Standard library alone.

    reseller serve
    RESELLER_API_KEY=ak_... python examples/fleet_report.py http://127.0.0.1:8000

It schedules a composite for every Monday with a share link, has it run at once, prints what it says and where its page is, and deletes the
schedule when Enter is pressed, or at once with `--delete`: the link is dead then. `--composite` chooses another one.
"""

import argparse
import json
import os
import sys
import time
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

PATIENCE = 150
"""Seconds to wait for the report: one answer about a large fleet may take 100."""
UNITS = {"percent": "%", "days": "days", "money": "EUR"}


class Refused(Exception):
    """The service said no; its words are for people."""


class Service:
    """The API, with a key."""

    def __init__(self, base: str, key: str) -> None:
        self._base, self._key = base.rstrip("/"), key

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One call."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            with urlopen(Request(self._base + path, data=content, headers=headers, method=method), timeout=PATIENCE) as answer:
                return json.load(answer)
        except HTTPError as refusal:
            said = json.load(refusal)
            raise Refused(f"{path}: {said['error']}. {said.get('hint', '')}".strip()) from None


def report_of(service: Service, schedule: str) -> dict[str, Any]:
    """Run it now and wait for what comes of it."""
    waiting = service.ask("POST", f"/v1/intelligence/schedules/{schedule}/run")
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        report = service.ask("GET", f"/v1/intelligence/schedules/{schedule}/report?report={waiting['id']}")
        if report["state"] == "failed":
            raise Refused(f"the report failed: {report['error']}")
        if report["state"] == "done":
            return report
        time.sleep(0.5)
    raise Refused(f"there was no report after {PATIENCE} seconds; its worker may not run")


def told(report: dict[str, Any]) -> None:
    """The report in a few lines."""
    finding, sheet = report["finding"], report["sheet"]
    print(f"{sheet['title']}: {sheet['headline']}")
    for figure in sheet["figures"]:
        print(f"  {figure['label']}: {figure['value']} {UNITS.get(figure['kind'], '')}".rstrip())
    print(f"looked into {finding['sampled']} of {finding['of']} lines: {finding['method']}")
    if finding["incomplete"]:
        print("missing:", " ".join(finding["incomplete"]["reasons"]))


def opened(link: str) -> str:
    """What somebody without a key sees under the link."""
    with urlopen(f"{link}?format=html", timeout=PATIENCE) as page:
        text = page.read().decode()
    return text[text.index("<title>") + 7 : text.index("</title>")]


def run(service: Service, composite: str, *, at_once: bool) -> None:
    """The whole way."""
    wanted = {"composite": composite, "cron": "0 7 * * MON", "timezone": "Europe/Berlin", "share": True}
    schedule = service.ask("POST", "/v1/intelligence/schedules", wanted)
    print(f"every Monday, next on {schedule['next_run']}")
    try:
        told(report_of(service, schedule["id"]))
        print(f"its page: {opened(schedule['share_url'])}")
        if not at_once:
            print(f"{schedule['share_url']}?format=html")
            print("Enter deletes the schedule and its link.", flush=True)
            sys.stdin.readline()
    finally:
        service.ask("DELETE", f"/v1/intelligence/schedules/{schedule['id']}")
    try:
        opened(schedule["share_url"])
    except HTTPError as gone:
        print(f"deleted; the link answers {gone.code}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Make a report about the fleet, show it, delete it.")
    parser.add_argument("base", help="address of the service")
    parser.add_argument("--composite", default="fleet_health", help="which one; fleet_health by default")
    parser.add_argument("--delete", action="store_true", help="delete the schedule at once, without asking")
    given = parser.parse_args()
    key = os.environ.get("RESELLER_API_KEY", "")
    if not key:
        sys.exit("Set RESELLER_API_KEY to a key: `serve` prints one, `reseller keys create NAME` makes one.")
    if not given.base.startswith("http"):
        sys.exit(f"{given.base} is no address: give the one that `serve` prints, such as http://127.0.0.1:8000.")
    try:
        run(Service(given.base, key), given.composite, at_once=given.delete)
    except Refused as refusal:
        sys.exit(str(refusal))
    except HTTPError as refusal:
        sys.exit(f"the page behind the link answers {refusal.code}")
    except URLError:
        sys.exit(f"No answer from {given.base}: is `serve` running, and is it the address that it prints?")


if __name__ == "__main__":
    main()
