"""The charging system as its wire shows it, small and quick: what issuing an eSIM and taking it back need.

Its log of dispatches is the only truth that an episode is judged by: our own ledger is what is on trial.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, cast

import orjson

from tests.network_facts import RESELLER
from tests.simulation.moment import seconds_of, stamp
from tests.simulation.provider_rows import PACKAGE, RESELLER_INFO, RESELLER_NAME, SIM_BODY, SMDP, SPONSOR, SUBSCRIBER, TEMPLATE_BODY, ZONES

Members = dict[str, Any]
DAY = 86_400
NOTHING: Members = {}
WRITE_METHODS = frozenset({"affectPackageToSubscriber", "deleteSubscriberPackage", "changeSimStatus"})


class Refused(Exception):
    """A status code other than 0."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Dispatch(NamedTuple):
    """A writing call that reached the system, with what it changed: `effect` says whether it changed anything.

    `by` is the number of the client's call that it was made for, which travels beside the wire; 0: for nobody's.
    """

    at: float
    by: int
    method: str
    account: int | None
    template: int | None
    effect: bool
    iccid: str | None
    package: int | None
    fault: str | None
    code: int
    line: str | None = None
    """The ICCID of the line that a package was to be put on, where the call named one."""


@dataclass(slots=True)
class Package:
    id: int
    line: int
    template: int
    days: int
    assigned: float
    priority: int
    starts: float | None
    ends: float | None


@dataclass(slots=True)
class Line:
    id: int
    account: int
    free: bool = True
    affected: float | None = None
    born: float = 0.0
    activated: float | None = None
    packages: list[Package] = field(default_factory=list[Package])
    provider: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])

    @property
    def sim(self) -> int:
        return self.id + 500_000

    @property
    def iccid(self) -> str:
        return f"8988303{self.id:012d}"

    @property
    def code(self) -> str:
        return f"SIM-{self.id}"


@dataclass(frozen=True, slots=True)
class Template:
    id: int
    name: str
    days: int
    deleted: bool = False
    sponsor: int = SPONSOR


class ModelNetwork:
    """The state and the methods. Times are Unix seconds of its own clock, which never jumps."""

    def __init__(
        self, clock: Callable[[], float], stock: Mapping[int, int], templates: tuple[Template, ...], rng: Random | None = None
    ) -> None:
        """`stock`: how many free eSIMs each account has. Which of them a draw is given, the seed says; without one the first."""
        self._clock, self._rng = clock, rng
        self.templates = {template.id: template for template in templates}
        self.lines: dict[int, Line] = {}
        self.accounts = dict(stock)
        self.packages: dict[int, Package] = {}
        self.log: list[Dispatch] = []
        self.calls = 0
        self._next = 900_000
        number = 400_000
        for account, count in stock.items():
            for _ in range(count):
                number += 1
                self.lines[number] = Line(number, account, born=clock())

    def perform(self, body: bytes, version: str, *, fault: str | None = None, code: int | None = None, by: int = 0) -> bytes:
        """One call, as far as it comes: with a `code` the system refuses it whatever it says, and nothing changes."""
        self.calls += 1
        ((method, params),) = cast(Members, orjson.loads(body)).items()
        payload, effect, status = NOTHING, NOTHING, code or 0
        if code is None:
            try:
                payload, effect = self._methods[method](self, params, version)
            except Refused as refused:
                status = refused.code
        if method in WRITE_METHODS:
            self._note(method, params, effect, fault, status, by)
        answer: Members = {"status": {"code": status, "msg": "OK" if status == 0 else "refused"}}
        if payload is not NOTHING:
            answer[method] = payload
        return orjson.dumps(answer)

    def _note(self, method: str, params: Any, effect: Members, fault: str | None, code: int, by: int) -> None:
        given: Members = params if isinstance(params, dict) else {}
        account, template = given.get("accountForSubs"), given.get("packageTemplateId")
        iccid, package = effect.get("iccid"), effect.get("package")
        onto = self.lines.get(given["subscriber"]["subscriberId"]) if "subscriber" in given else None
        line = None if onto is None else onto.iccid
        self.log.append(Dispatch(self._clock(), by, method, account, template, bool(effect), iccid, package, fault, code, line))

    def _affect(self, params: Members, version: str) -> tuple[Members, Members]:
        line = self._drawn(params)
        template = self.templates.get(params["packageTemplateId"])
        if template is None or template.deleted:
            raise Refused(6)
        if template.sponsor != SPONSOR:
            raise Refused(14)
        package = self._granted(line, template, params)
        line.activated = line.activated or self._clock()
        if line.free:
            line.free, line.affected = False, self._clock()
            line.provider.append(("Released", self._clock()))
        shown: Members = {
            "iccid": line.iccid,
            "smdpServer": SMDP,
            "activationCode": line.code,
            "urlQrCode": f"LPA:1${SMDP}${line.code}",
            "subscriberId": line.id,
            "esimId": line.sim,
            "subsPackageId": package.id,
            "userSimName": f"{RESELLER_NAME}_{line.id}",
        }
        return shown, {"iccid": line.iccid, "package": package.id}

    def _drawn(self, params: Members) -> Line:
        if "accountForSubs" not in params:
            return self._line(params["subscriber"])
        account = params["accountForSubs"]
        if account not in self.accounts:
            raise Refused(6)
        free = [line for line in self.lines.values() if line.account == account and line.free]
        if not free:
            raise Refused(6)
        return free[0 if self._rng is None else int(self._rng.random() * len(free))]

    def _granted(self, line: Line, template: Template, params: Members) -> Package:
        self._next += 1
        days, period, now = params.get("validityPeriod"), params.get("activePeriod"), self._clock()
        starts, ends = (None, None) if days is None else (now, now + days * DAY)
        if period is not None:
            starts, ends = seconds_of(period["start"]), seconds_of(period["end"])
        priority = max((held.priority for held in line.packages), default=0) + 1
        package = Package(self._next, line.id, template.id, days or template.days, now, priority, starts, ends)
        line.packages.append(package)
        self.packages[package.id] = package
        return package

    def _delete(self, params: int, version: str) -> tuple[Members, Members]:
        package = self.packages.pop(params, None)
        if package is None:
            raise Refused(6)
        line = self.lines[package.line]
        line.packages.remove(package)
        return NOTHING, {"iccid": line.iccid, "package": package.id}

    def _change_sim(self, params: Members, version: str) -> tuple[Members, Members]:
        line = self._of_sim(params["simId"])
        line.free = params["newStatus"] == "Free"
        line.affected = None if line.free else line.affected or self._clock()
        return NOTHING, {"iccid": line.iccid}

    def _sim_status(self, params: int, version: str) -> tuple[Any, Members]:
        line = self._of_sim(params)
        rows: list[Members] = []
        end: float | None = None
        for status, start in reversed(line.provider):
            row: Members = {"simId": line.sim, "status": status, "start": stamp(start), "profileType": "P1"}
            row |= {"statusModification": "Executed-Success"} | ({} if end is None else {"end": stamp(end)})
            rows.append(row)
            end = start
        return rows or NOTHING, NOTHING

    def _single(self, params: Members, version: str) -> tuple[Members, Members]:
        return self._shown(self._line(params), sim=params.get("withSimInfo") is not False), NOTHING

    def _list(self, params: Members, version: str) -> tuple[Members, Members]:
        account = params.get("accountId")
        if account not in self.accounts:
            raise Refused(6)
        rows = [self._shown(line) for line in self.lines.values() if line.account == account]
        return {"subscriberList": rows, "hasMore": False, "nbFound": len(rows)}, NOTHING

    def _packages(self, params: Members, version: str) -> tuple[Members, Members]:
        line = self._line(params)
        packages = [self._package(line, package) for package in line.packages]
        return ({"packages": packages} if packages else {}) | {"callUseSingleCounter": False}, NOTHING

    def _accounts(self, params: Members, version: str) -> tuple[Members, Members]:
        accounts = [{"id": id, "name": f"Account {id}", "balance": 100.0, "packageOnly": False} for id in self.accounts]
        return {"reseller": [{"id": RESELLER, "name": RESELLER_NAME, "account": accounts}]}, NOTHING

    def _stock(self, params: Members, version: str) -> tuple[Members, Members]:
        account = params.get("accountId")
        rows = [self._stock_row(id) for id in self.accounts if account is None or id == account]
        if not rows:
            raise Refused(6)
        return {"account": rows}, NOTHING

    def _stock_row(self, account: int) -> Members:
        held = [line.free for line in self.lines.values() if line.account == account]
        counts = ((0, "Free", sum(held)), (2, "Affected", len(held) - sum(held)))
        status = [{"statusNum": number, "statusStr": word, "count": count} for number, word, count in counts if count]
        return {"id": account, "name": f"Account {account}", "sponsor": [{"id": SPONSOR, "name": "SPX", "esim": {"status": status}}]}

    def _templates(self, params: Members, version: str) -> tuple[Members, Members]:
        wanted = params.get("templateId")
        rows = [listed(template) for template in self.templates.values() if wanted is None or template.id == wanted]
        return {"template": rows}, NOTHING

    def _zones(self, params: object, version: str) -> tuple[Any, Members]:
        return ZONES, NOTHING

    def _reseller(self, params: Members, version: str) -> tuple[Members, Members]:
        return RESELLER_INFO, NOTHING

    def _line(self, params: Members) -> Line:
        number = params.get("subscriberId") or params.get("subscriber")
        if isinstance(number, dict):
            return self._line(cast(Members, number))
        if number is not None:
            found = self.lines.get(number)
        else:
            found = next((line for line in self.lines.values() if line.iccid == params.get("iccid")), None)
        if found is None:
            raise Refused(6)
        return found

    def _of_sim(self, number: int) -> Line:
        line = self.lines.get(number - 500_000)
        if line is None:
            raise Refused(6)
        return line

    def _shown(self, line: Line, *, sim: bool = True) -> Members:
        began = stamp(line.born)
        shown: Members = {
            **SUBSCRIBER,
            "subscriberId": line.id,
            "accountId": line.account,
            "account": f"Account {line.account}",
            "imsiList": [{"id": line.id, "subscriberId": line.id, "imsi": f"20404{line.id:010d}", "iccid": line.iccid, "startDate": began}],
            "phoneNumberList": [{"id": line.id, "subscriberId": line.id, "phoneNumber": f"4790{line.id}", "startDate": began}],
            "status": [{"id": line.id, "subscriberId": line.id, "startDate": began, "status": "Pending"}],
        }
        if line.activated is not None:
            active = shown["activationDate"] = stamp(line.activated)
            shown["status"][0]["endDate"] = active
            shown["status"].append({"id": line.id + 1, "subscriberId": line.id, "startDate": active, "status": "Active"})
        if sim:
            affected = {} if line.affected is None else {"affectationDateUtc": stamp(line.affected)}
            shown["sim"] = {**SIM_BODY, "id": line.sim, "subscriberId": line.id, "status": "FREE" if line.free else "AFFECTED"}
            shown["sim"] |= {"activationCode": line.code, **affected}
        return shown

    def _package(self, line: Line, package: Package) -> Members:
        name = self.templates[package.template].name
        shown: Members = {
            **PACKAGE,
            "subscriberprepaidpackageid": package.id,
            "subscriberid": line.id,
            "priority": package.priority,
            "packageTemplate": {"prepaidpackagetemplateid": package.template, "prepaidpackagetemplatename": name},
            "templateId": package.template,
            "esimId": line.sim,
            "tsassigned": stamp(package.assigned),
            "perioddays": package.days,
        }
        if package.starts is not None and package.ends is not None:
            shown |= {"tsactivationutc": stamp(package.starts), "tsexpirationutc": stamp(package.ends)}
        return shown

    _methods: Mapping[str, Callable[..., tuple[Any, Members]]] = {
        "affectPackageToSubscriber": _affect,
        "deleteSubscriberPackage": _delete,
        "changeSimStatus": _change_sim,
        "getSimProviderStatus": _sim_status,
        "getSingleSubscriber": _single,
        "listSubscriber": _list,
        "listSubscriberPrepaidPackages": _packages,
        "listResellerAccount": _accounts,
        "esimStatusPerAccount": _stock,
        "listPrepaidPackageTemplate": _templates,
        "listDetailedLocationZone": _zones,
        "getResellerInfo": _reseller,
    }


def listed(template: Template) -> Members:
    return {
        **TEMPLATE_BODY,
        "prepaidpackagetemplateid": template.id,
        "prepaidpackagetemplatename": template.name,
        "perioddays": template.days,
        "deleted": template.deleted,
    }
