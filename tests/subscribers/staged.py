"""An operator on the simulated network, one line of theirs, and every write that an operation makes on a line."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from operations.subscribers import charging, contact, line_status, network_access, sms, usage
from registry.catalogue import Catalogue, Toolset
from registry.policy import quota_period
from simulators.network.entities import Line
from simulators.network.simulated_network import SimulatedNetwork
from storage.quota import read_quota_used
from tests.registry import ledgers
from tests.stage import OperatorStage, open_operator
from tests.world import Credentials

MODULES = (line_status, sms, network_access, charging, contact, contact, charging, network_access, line_status, usage)
CATALOGUE = Catalogue([Toolset("subscribers", "Lines.", MODULES)])
READS = frozenset(
    {
        "getSimProviderStatus",
        "getSingleSubscriber",
        "getResellerInfo",
        "listResellerAccount",
        "listSteeringList",
        "listSubscriberTariff",
        "listSubscriberVoipTariff",
    }
)


class Write(NamedTuple):
    """One write: how it is asked for, the method it sends, and what it changes on a line of the network."""

    operation: str
    method: str
    path: str
    body: dict[str, object]
    sends: str
    changes: Callable[[Line], object] | None
    """None: the network keeps nothing of it."""


LINE_WRITES = [
    Write("modify_subscriber_status", "PUT", "status", {"status": "SUSPENDED"}, "modifySubscriberStatus", lambda line: len(line.statuses)),
    Write("modify_subscriber_balance", "PUT", "balance", {"amount": -1}, "modifySubscriberBalance", lambda line: line.balance),
    Write(
        "modify_subscriber_contact_info", "PUT", "contact", {"company": "Fjell"}, "modifySubscriberContactInfo", lambda line: line.company
    ),
    Write(
        "affect_subscriber_phone_number",
        "PUT",
        "phone-number",
        {"phoneType": "real", "phoneNumber": "+4790000001"},
        "affectSubscriberRealPhoneNumber",
        lambda line: len(line.numbers),
    ),
    Write(
        "modify_subscriber_mobile_plan",
        "PUT",
        "mobile-plan",
        {"planId": 530},
        "modifySubscriberMobilePlan",
        lambda line: line.mobile_plan_id,
    ),
    Write("modify_subscriber_voip_plan", "PUT", "voip-plan", {"planId": 92}, "modifySubscriberVoipPlan", lambda line: line.voip_plan_id),
    Write("change_sim_status", "PUT", "sim-status", {"status": "DISABLED"}, "changeSimStatus", lambda line: line.sim.status),
    Write("send_sms", "POST", "sms", {"message": "Hello"}, "sendMtSms", None),
    Write(
        "modify_subscriber_steering_list",
        "PUT",
        "steering-list",
        {"listId": 17},
        "modifySubscriberSteeringList",
        lambda line: line.steering_list_id,
    ),
    Write("push_steering_to_subscriber", "POST", "steering-list/push", {}, "pushSteeringToSubs", None),
    Write(
        "set_subscriber_traffic_restrictions",
        "PUT",
        "traffic-restrictions",
        {"moc": False},
        "setSubscriberTrafficRestrictions",
        lambda line: line.allowed_moc,
    ),
    Write("reset_subscriber_gz_counter", "POST", "gz-counter/reset", {}, "resetSubsGzCounter", lambda line: line.green_bytes),
]


@dataclass(slots=True)
class LineStage(OperatorStage):
    """An operator, and one line of theirs that is in use."""

    line: Line = field(init=False)

    async def ask(
        self,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        method: str = "PUT",
        key: str | None = None,
        iccid: str | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> httpx.Response:
        """One call about the line; a confirm challenge is answered with its token."""
        http, headers = http or self.http, {} if key is None else {"Idempotency-Key": key}
        url = f"/v1/subscribers/{iccid or self.line.iccid}/{path}"
        said = await http.request(method, url, json=body or {}, headers=headers)
        if said.status_code != 202:
            return said
        return await http.request(method, url, json=body or {}, headers={**headers, "X-Confirm-Token": said.json()["confirm_token"]})

    async def write(self, write: Write, line: Line, *, key: str | None = None, http: httpx.AsyncClient | None = None) -> httpx.Response:
        return await self.ask(write.path, write.body, method=write.method, key=key, iccid=line.iccid, http=http)

    def writes(self) -> list[tuple[str, object]]:
        return [(call.method, call.payload) for call in self.world.sandbox.calls if call.method not in READS]

    def in_status(self, account: int = 8101, status: str = "ACTIVE") -> list[Line]:
        """The lines of an account in a status, of those that were seen on the air when they are in use."""
        found = [line for line in self.network.lines_of(account) if line.status == status]
        return [line for line in found if line.sighting is not None or status != "ACTIVE"]

    def prepared(self, account: int = 8101) -> dict[str, Line]:
        """A line for each write, on which it changes something; the simulated air is quiet in the seconds of a test."""
        drawn = {write.operation: line for write, line in zip(LINE_WRITES, self.in_status(account), strict=False)}
        assert len(drawn) == len(LINE_WRITES)
        for line in drawn.values():
            line.balance, line.green_bytes, line.allowed_moc, line.sim.status = 5_000_000, 4096, True, "AFFECTED"
            line.mobile_plan_id = line.voip_plan_id = line.steering_list_id = line.company = None
        return drawn

    async def charged(self, who: Credentials | None = None) -> int:
        organisation, period = (who or self.who).organisation, quota_period(self.world.clock.now())
        leased = self.world.blocks.unspent(organisation, period)
        return await self.world.store.read(read_quota_used, organisation=organisation, period=period.name) - leased

    async def claims(self) -> dict[str, str]:
        return {row.key: row.state for row in await self.world.store.read(ledgers.claimed)}


@asynccontextmanager
async def open_line_stage(folder: Path, sandbox: SimulatedNetwork | None = None) -> AsyncGenerator[LineStage]:
    """The line was seen on the air and may be used."""
    async with open_operator(folder, CATALOGUE, LineStage, sandbox=sandbox) as stage:
        stage.line = stage.in_status()[0]
        yield stage
