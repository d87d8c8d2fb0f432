"""The documented inputs, with the ids of a simulated network in place of the documented ones."""

from dataclasses import dataclass, field
from typing import Any

from operations.catalogue import CATALOGUE as WHOLE
from registry.catalogue import Catalogue
from simulators.network import packages as engine
from simulators.network.entities import Line, PackageTemplate
from simulators.network.world import World as Network
from tests.faults.rows import CallRow
from tests.network.stage import NETWORK_OPERATIONS as NETWORKS

UPSTREAM_OPERATIONS = Catalogue(list({toolset.name: toolset for toolset in (*NETWORKS.toolsets, *WHOLE.toolsets)}.values()))
FITTED = {
    "modify_subscriber_balance": {"amount": -1},
    "move_subscriber_range_to_account": {"destAccount": 8102},
    "stop_resume_recurring_package": {"action": "stop"},
}
BY_OWN_TOKEN = "move_subscriber_range_to_account"  # in managed mode there is no second account
ONE_TIME, MONTHLY = "Nordic 1GB 30d", "Nordic monthly 3GB"


@dataclass(slots=True)
class Inputs:
    """What account 8101 can be called with; `template` and `zone` are the caller's own."""

    network: Network
    template: int = 0
    zone: int = 0
    lines: dict[str, Line] = field(default_factory=dict[str, Line])

    def line(self, name: str) -> Line:
        """A line in use for each row, as good as new."""
        if name not in self.lines:
            taken = {line.id for line in self.lines.values()}
            self.lines[name] = next(
                line
                for line in self.network.lines_of(8101)
                if line.status == "ACTIVE" and line.sighting is not None and line.id not in taken
            )
        line = self.lines[name]
        line.account_id, line.balance, line.sim.status, line.steering_list_id = 8101, 500_000_000, "AFFECTED", 17
        line.statuses = [row for row in line.statuses if row.status == "ACTIVE"][-1:]
        line.statuses[0].end = None
        line.packages.clear()
        line.series.clear()
        return line

    def fitted(self, row: CallRow) -> dict[str, Any]:
        """The example's input with this network's ids."""
        laid = {**UPSTREAM_OPERATIONS.operations[row.operation].examples[0].input, **FITTED.get(row.operation, {}), **row.more}
        given = {name: value for name, value in laid.items() if value is not None}
        if "iccid" in given or "rangeStart" in given:
            line = self.line(row.name)
            given |= {name: line.iccid for name in ("iccid", "rangeStart", "rangeEnd") if name in given}
            given |= {"packageId": self.package(row, line)} if "packageId" in given else {}
        if "packageTemplateId" in given:
            given["packageTemplateId"] = self.sold(MONTHLY if "recurring" in row.operation else ONE_TIME).id
        given |= {"templateId": self.template} if "templateId" in given else {}
        given |= {"locationZoneId": self.zone} if row.operation.startswith("change_network_profile") else {}
        return given

    def package(self, row: CallRow, line: Line) -> int:
        """A package on the line that the operation takes."""
        if row.operation == "stop_resume_recurring_package":
            _, first = engine.assign_package_series(self.network, line, self.sold(MONTHLY), start=self.network.now, at_first_use=False)
            assert first is not None
            return first.id
        waits = row.operation == "modify_subscriber_package_active_period"  # its dates are set as long as it has none
        return engine.assign_package(self.network, line, self.sold(ONE_TIME), period=None, validity_days=None if waits else 30).id

    def sold(self, name: str) -> PackageTemplate:
        """A template of the shared reseller."""
        return next(found for found in self.network.templates.values() if (found.name, found.reseller_id) == (name, 7001))

    def renew(self) -> None:
        """Zones and templates that former calls made are gone: their names are free again."""
        self.network.zones = {id: zone for id, zone in self.network.zones.items() if id <= max(self.zone, 2326)}
        for id in [id for id in self.network.templates if self.template and id > self.template]:
            del self.network.templates[id]
