"""A line's month, from the shelf to the bill: what happens on a simulated network, and what the service shows of it.

    reseller sandbox ocs --clock frozen --history-days 0 --start -31d
    SERVICE_OCS_URL=http://127.0.0.1:8090/v1 SERVICE_OCS_TOKEN=sandbox-7001-token reseller serve
    reseller org connect org_... --account 8101
    RESELLER_API_KEY=ak_... python examples/fleet_month.py http://127.0.0.1:8000 http://127.0.0.1:8090

docs/simulated-network.md has more of it. The network's clock moves here; the service's own is the machine's, which is why the month began
31 days ago. Countries appear when the network was started with --push-to and the service's webhook address.
"""

import os
import sys
import time
import uuid
from typing import Any

import httpx

MIB = 1 << 20
DATA = 33
PATIENCE = 60
"""Seconds without a notification being taken until that is an error."""
TRIP = (("no", 300), ("fr", 1300), ("de", 500), ("es", 200))
"""A country and how many MiB are used in it, week by week; the package holds 1024."""


class Service:
    """Our side: the operations, over HTTP."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, **query: Any) -> Any:
        """What an operation answers. A key makes it safe to send a write again; a new one each time, since a new network knows none."""
        headers = {"Idempotency-Key": f"fleet-month-{uuid.uuid4()}"} if path.endswith("/recurring") else {}
        said = self.http.request(method, f"/v1/{path}", json=body, params=query, headers=headers)
        if said.is_error:
            sys.exit(f"{method} {path}: {said.status_code} {said.json().get('error', said.text)}\n{said.json().get('hint', '')}")
        return said.json()["data"]


class Network:
    """The other side: what phones and time do, over the network's control API."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def ask(self, name: str, body: dict[str, Any] | None = None, **query: str) -> Any:
        """What the network did."""
        said = self.http.request("GET" if body is None else "POST", f"/control/{name}", json=body, params=query)
        if said.is_error:
            sys.exit(f"the network refused {name}: {said.text}")
        return said.json()

    def told(self) -> None:
        """Wait until its notifications, those of all lines, have been answered."""
        waiting, since = -1, time.monotonic()
        while time.monotonic() - since < PATIENCE:
            left = self.ask("state")["pushesWaiting"]
            if left == 0:
                return
            if left != waiting:
                waiting, since = left, time.monotonic()
            time.sleep(0.1)
        sys.exit(f"{waiting} of the network's notifications are not taken; is the address of --push-to right?")


def week(service: Service, network: Network, iccid: str, iso2: str, mebibytes: int) -> None:
    """A week in one country: arrive, use data, let seven days pass."""
    place = network.ask("networks", iso2=iso2)["networks"][0]
    today = network.ask("state")["now"][:10]
    network.ask("attach", {"iccid": iccid, "networkId": place["networkId"]})
    records = network.ask("usage", {"iccid": iccid, "networkId": place["networkId"], "usageType": DATA, "quantity": mebibytes * MIB})[
        "records"
    ]
    speed = service.ask("GET", f"subscribers/{iccid}/bitrate")["limit"]
    usage = service.ask("POST", f"subscribers/{iccid}/usage", {"start": today, "end": today, "records": False})
    paid = sum(row["inPackage"] for row in records)
    print(
        f"{today}  {place['countryName']:<8} {usage['dataBytes'] / MIB:6.0f} MiB used, {paid / MIB:.0f} of the package, speed {speed},"
        f" charged {usage['total']['subscriberCost']:.2f} EUR"
    )
    network.ask("advance", {"days": 7})


def books(service: Service, network: Network, iccid: str, first: str) -> bool:
    """The month in figures, and whether they add up."""
    last = network.ask("state")["now"][:10]
    usage = service.ask("POST", f"subscribers/{iccid}/usage", {"start": first, "end": last})
    packages = service.ask("GET", f"subscribers/{iccid}/packages")
    days = [day for line in usage["usages"] for day in line["subsPeriodUsages"]]
    records = [record for day in days for record in day["subsDailyUsages"]]
    print(f"\n{first} to {last}: {usage['dataBytes'] / MIB:.0f} MiB in {len(records)} records")
    for country in usage["total"]["quantityPerCountry"]:
        print(f"  {country['name']:<10} {country['qty'] / MIB:6.0f} MiB")
    adds_up = usage["dataBytes"] == sum(record["quantity"] for record in records)
    for package in packages:
        counted = sum(
            record["subscriberPrepaidPackageQty"] for record in records if record.get("subscriberPrepaidPackageId") == package["packageId"]
        )
        adds_up = adds_up and counted == package["useddatabyte"]
        print(
            f"  package {package['packageId']}  {package['tsactivationutc'][:10]} to {package['tsexpirationutc'][:10]}"
            f"  {package['useddatabyte'] / MIB:5.0f} of {package['pckdatabyte'] / MIB:.0f} MiB  {package['state']}"
        )
    history = service.ask("GET", f"subscribers/{iccid}/country-history")
    print("  countries, newest first:", " ".join(entry["country"] for entry in history) or "none was pushed")
    return adds_up


def ready(service: Service, iccid: str) -> None:
    """The package has made the line active; if not, say what is wrong before the phone does."""
    line = service.ask("GET", f"subscribers/{iccid}")
    if line["currentStatus"] != "Active" or not line["allowedData"]:
        sys.exit(f"line {iccid} cannot use data: it is {line['currentStatus']}, data is {'' if line['allowedData'] else 'not '}allowed")


def main(service: Service, network: Network) -> None:
    """A line from the shelf gets a weekly package and travels."""
    line = next((row for row in service.ask("GET", "subscribers") if row["sim"]["status"] == "FREE"), None)
    templates = service.ask("GET", "package-templates")
    template = next((row for row in templates if row["prepaidpackagetemplatename"] == "Europe weekly 1GB"), None)
    if line is None or template is None:
        sys.exit("no free line, or no template Europe weekly 1GB: start the network anew, or is the service connected to another one?")
    iccid = line["iccid"]
    service.ask("POST", f"subscribers/{iccid}/packages/recurring", {"packageTemplateId": template["templateId"]})
    ready(service, iccid)
    print(f"line {iccid}: {template['prepaidpackagetemplatename']}, {template['databyte'] / MIB:.0f} MiB every week")
    first = network.ask("state")["now"][:10]
    for iso2, mebibytes in TRIP:
        week(service, network, iccid, iso2, mebibytes)
    network.told()
    if not books(service, network, iccid, first):
        sys.exit("the figures do not add up")
    print("the figures add up")


if __name__ == "__main__":
    if "RESELLER_API_KEY" not in os.environ:
        sys.exit("Set RESELLER_API_KEY to a key: `serve` prints one, `reseller keys create NAME` makes one.")
    addresses = (sys.argv[1:] + ["http://127.0.0.1:8000", "http://127.0.0.1:8090"][len(sys.argv) - 1 :])[:2]
    if not all(address.startswith("http") for address in addresses):
        sys.exit("Give two addresses, the one that `serve` prints and that of the network, such as http://127.0.0.1:8090.")
    key = {"Authorization": f"Bearer {os.environ['RESELLER_API_KEY']}"}
    with httpx.Client(base_url=addresses[0], headers=key, timeout=60) as ours, httpx.Client(base_url=addresses[1], timeout=60) as theirs:
        try:
            main(Service(ours), Network(theirs))
        except httpx.TransportError as error:
            sys.exit(f"No answer from {error.request.url}: are `serve` and the network running, and at these addresses?")
