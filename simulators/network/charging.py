"""Charging: what a use costs by the tariffs, and who pays: packages by priority, then the green zone, then a balance."""

from bisect import insort
from dataclasses import dataclass, field

from simulators.network import radio
from simulators.network.entities import (
    DATA,
    MEBIBYTE,
    MO_SMS,
    MOC,
    MOC_VOIP,
    MT_SMS,
    MTC,
    MTC_VOIP,
    BalanceChange,
    Cdr,
    Line,
    NetworkEvent,
    NetworkRefusal,
    Package,
    Reseller,
    ResellerAccount,
)
from simulators.network.fair_use import covering_packages, open_green_zone, refresh_throttle, use_green_zone
from simulators.network.packages import begin_package
from simulators.network.world import Network, TariffRule, VoipRule, World

USAGE_TYPES = (MOC, MTC, MO_SMS, MT_SMS, DATA, MOC_VOIP, MTC_VOIP)
TARIFF_RATES = {DATA: "data_rate", MOC: "moc_rate", MTC: "mtc_rate", MO_SMS: "mo_sms_rate", MT_SMS: "mt_sms_rate"}
# Choice: notifications name calls over IP as the calls whose units they use.
USAGE_NAMES = {DATA: "DATA", MOC: "MOC", MTC: "MTC", MO_SMS: "MO_SMS", MT_SMS: "MT_SMS", MOC_VOIP: "MOC", MTC_VOIP: "MTC"}


@dataclass(slots=True)
class UsageCharge:
    world: World
    line: Line
    reseller: Reseller
    account: ResellerAccount
    network: Network
    usage_type: int
    at: int
    other_party: str | None
    session: str
    buy: TariffRule | None
    rest: int
    cdrs: list[Cdr] = field(default_factory=list[Cdr])


def use_service(
    world: World, line: Line, usage_type: int, quantity: int, *, network_id: int, at: int | None = None, other_party: str | None = None
) -> list[Cdr]:
    """Use a service as a phone would; refused when the line may not (14) or nobody pays for any of it (14)."""
    if usage_type not in USAGE_TYPES or quantity < 1:
        raise NetworkRefusal(2, f"Usage type {usage_type} with quantity {quantity}: a known type and at least 1 are needed")
    if network_id not in world.networks:
        raise NetworkRefusal(6, f"Network {network_id} not found")
    if not may_use_service(line, usage_type):
        raise NetworkRefusal(14, f"Subscriber {line.id} is {line.status} or usage type {usage_type} is not allowed")
    cdrs = charge_usage(world, line, usage_type, quantity, network_id, world.now if at is None else at, other_party)
    if not cdrs:
        raise NetworkRefusal(14, f"No package of subscriber {line.id} covers this use and no balance pays for it")
    return cdrs


def may_use_service(line: Line, usage_type: int) -> bool:
    """Only ACTIVE lines use services, each only what it is allowed; incoming messages always."""
    if line.status != "ACTIVE":
        return False
    if usage_type == DATA:
        return line.allowed_data
    if usage_type in (MOC, MOC_VOIP):
        return line.allowed_moc
    if usage_type in (MTC, MTC_VOIP):
        return line.allowed_mtc
    return usage_type != MO_SMS or line.allowed_mo_sms


def charge_usage(
    world: World, line: Line, usage_type: int, quantity: int, network_id: int, at: int, other_party: str | None = None
) -> list[Cdr]:
    """Charge as much of a use as somebody pays for: one record per payer, all with the same session."""
    began = _begin_charge(world, line, usage_type, quantity, network_id, at, other_party)
    covering = covering_packages(world, line, network_id, at)
    for package in covering:
        if began.rest == 0:
            break
        _from_package(began, package)
    if began.rest and usage_type == DATA:
        zone = open_green_zone(began.world, began.line, covering)
        if zone is not None:
            _record_usage(began, use_green_zone(began.line, zone, began.rest, began.at), None)
    if began.rest:
        _from_balance(began)
    _finish_charge(began, covering)
    return began.cdrs


def _begin_charge(
    world: World, line: Line, usage_type: int, quantity: int, network_id: int, at: int, other_party: str | None
) -> UsageCharge:
    network = world.networks[network_id]
    if radio.needs_attach(line, network, at):
        radio.attach_to_network(world, line, network_id, at)
    else:
        radio.update_sighting(line, network, at)
    reseller = world.resellers[line.reseller_id]
    buy = find_tariff_rule(world, reseller.buy_tariff_id, network_id, line.sim.sponsor_id, at)
    session = f"ocs;{at};{world.next_id('session')}"
    account = world.accounts[line.account_id]
    return UsageCharge(world, line, reseller, account, network, usage_type, at, other_party, session, buy, quantity)


def _from_package(began: UsageCharge, package: Package) -> None:
    """Take what the package has left of this kind; the first use begins an undated package."""
    kind = counted_usage_type(began.world, began.line, package, began.usage_type)
    taken = min(began.rest, package.units_left(kind))
    if taken == 0 or not covers_destination(began.world, package, began.usage_type, began.other_party):
        return
    if package.activated is None:
        begin_package(began.world, package, began.at)
    limit, before = package.counter(kind)
    package.count_usage(kind, taken)
    cost = _record_usage(began, taken, package)
    package.reseller_cost += cost
    package.parent_cost += _parent_cost(began, taken)
    _notify_thresholds(began, package, kind, limit or 0, before, before + taken)


def _from_balance(began: UsageCharge) -> None:
    """The balance pays what it can and the rest does not happen. Choice: what has no price is not sold outside packages."""
    line, account, per = began.line, began.account, rate_unit(began.usage_type)
    rate, rule_id = _price(began)
    if rate is None:
        return
    on_account = line.use_account
    balance = account.balance if on_account else line.balance
    if on_account and account.package_only:
        balance = 0  # an account without spendable balance
    payable = affordable_units(rate, balance, per)
    taken = began.rest if payable is None else min(began.rest, payable)
    if taken == 0:
        return
    cost = usage_cost(rate, taken, per)
    _record_usage(began, taken, None, cost, rule_id)
    _pay_from_balance(began, cost)


def _price(began: UsageCharge) -> tuple[int | None, int | None]:
    """Rate and rule of the tariff that charges the line: its own plan, else its reseller's. Choice: incoming calls over IP are free."""
    world, line, reseller = began.world, began.line, began.reseller
    if began.usage_type == MTC_VOIP:
        return 0, None
    if began.usage_type == MOC_VOIP:
        voip = find_voip_rule(world, line.voip_plan_id or reseller.voip_plan_id, began.other_party)
        return (None if voip is None else voip.price), None
    sell = find_tariff_rule(world, line.mobile_plan_id or reseller.mobile_plan_id, began.network.network_id, line.sim.sponsor_id, began.at)
    return tariff_rate(sell, began.usage_type), None if sell is None else sell.id


def _pay_from_balance(began: UsageCharge, cost: int) -> None:
    if cost == 0:
        return
    payer, kind = (began.account, "account") if began.line.use_account else (began.line, "line")
    payer.balance -= cost
    began.world.transactions.append(BalanceChange(began.at, kind, payer.id, -cost, payer.balance, f"Usage {began.session}"))


def _record_usage(began: UsageCharge, quantity: int, package: Package | None, charged: int = 0, rule_id: int | None = None) -> int:
    """Write the call record and charge the reseller. Choice: the reseller's balance stops at 0 and its records are its ledger."""
    line, buy, seen = began.line, began.buy, began.line.sighting
    cost = usage_cost(tariff_rate(buy, began.usage_type), quantity, rate_unit(began.usage_type))
    began.reseller.balance = max(0, began.reseller.balance - cost)
    began.rest -= quantity
    mcc, mnc = began.network.codes[line.id % len(began.network.codes)]
    record = Cdr(
        line.id,
        began.session,
        began.at,
        began.usage_type,
        line.account_id,
        began.network.network_id,
        mcc,
        mnc,
        quantity,
        quantity if package is not None else 0,
        package.id if package is not None else None,
        cost,
        buy.id if buy is not None else None,
        charged,
        rule_id,
        rule_id is not None and line.use_account,
        seen.lac if seen is not None else 0,
        seen.cell_id if seen is not None else 0,
        seen.rat if seen is not None else "",
        seen.imei if seen is not None else "",
        began.other_party,
    )
    began.cdrs.append(record)
    if line.cdrs and line.cdrs[-1].at > began.at:
        insort(line.cdrs, record, key=lambda kept: kept.at)
    else:
        line.cdrs.append(record)
    return cost


def _parent_cost(began: UsageCharge, quantity: int) -> int:
    """What the parent reseller pays by its own tariff. Choice: shown on the package; only the line's own reseller is debited."""
    parent = began.world.resellers.get(began.reseller.parent_id)
    if parent is None:
        return 0
    buy = find_tariff_rule(began.world, parent.buy_tariff_id, began.network.network_id, began.line.sim.sponsor_id, began.at)
    return usage_cost(tariff_rate(buy, began.usage_type), quantity, rate_unit(began.usage_type))


def _notify_thresholds(began: UsageCharge, package: Package, kind: int, limit: int, before: int, after: int) -> None:
    """Notifies each threshold once per kind of use: a mark is the kind times 1000 plus the percentage."""
    target = began.reseller.push
    for percent in target.thresholds:
        mark = kind * 1000 + percent
        if after * 100 >= limit * percent and mark not in package.notified:
            package.notified |= {mark}
            if target.usage_url and before * 100 < limit * percent:
                push_package_usage(began.world, began.line, package, kind, (before, after), percent, limit)


def _finish_charge(began: UsageCharge, covering: list[Package]) -> None:
    line, at = began.line, began.at
    if began.usage_type == DATA:
        _data_event(began)
        if line.throttled or any(_throttles(began.world, package) for package in covering) or line.green_updated == at:
            refresh_throttle(began.world, line, began.network.network_id, at)
    if began.cdrs:
        line.last_usage_at = max(at, line.last_usage_at or at)
        line.first_usage_at = min(at, line.first_usage_at or at)


def _throttles(world: World, package: Package) -> bool:
    template = world.templates.get(package.template_id)
    return template is not None and template.throttling


def _data_event(began: UsageCharge) -> None:
    """The credit request of a data session: its end with what was used, or the refusal to begin."""
    used = sum(part.quantity for part in began.cdrs)
    mcc, mnc = began.network.codes[began.line.id % len(began.network.codes)]
    code, result = ("CCR-T", "2001") if began.cdrs else ("CCR-I", "4012")
    radio.record_network_event(
        began.line, NetworkEvent(began.at, "gy", code, began.network.network_id, mcc, mnc, result, began.session, used)
    )


def find_tariff_rule(world: World, tariff_id: int | None, network_id: int, sponsor_id: int, at: int) -> TariffRule | None:
    """The active rule of a network: one for this sponsor wins over one for any; the newest that has begun counts."""
    tariff = world.tariffs.get(tariff_id) if tariff_id is not None else None
    if tariff is None:
        return None
    if tariff.indexed is not tariff.rules:
        tariff.index = {}
        for row in sorted(tariff.rules, key=lambda row: -row.start):
            tariff.index.setdefault((row.network_id, row.sponsor_id), []).append(row)
        tariff.indexed = tariff.rules
    for key in ((network_id, sponsor_id), (network_id, None)):
        for found in tariff.index.get(key, ()):
            if found.active and found.start <= at:
                return found
    return None


def tariff_rate(found: TariffRule | None, usage_type: int) -> int | None:
    """The rule's rate for a kind of use; None: not sold."""
    return getattr(found, TARIFF_RATES[usage_type]) if found is not None and usage_type in TARIFF_RATES else None


def find_voip_rule(world: World, plan_id: int | None, other_party: str | None) -> VoipRule | None:
    """The longest prefix of the called number wins."""
    plan = world.voip_tariffs.get(plan_id) if plan_id is not None else None
    if plan is None or other_party is None:
        return None
    return max((row for row in plan.rules if other_party.startswith(row.prefix)), key=lambda row: len(row.prefix), default=None)


def rate_unit(usage_type: int) -> int:
    """How many units a rate pays for: a mebibyte, a minute (charged by the second), one message."""
    if usage_type == DATA:
        return MEBIBYTE
    return 1 if usage_type in (MO_SMS, MT_SMS) else 60


def usage_cost(rate: int | None, quantity: int, per: int) -> int:
    """The cost of `quantity` units in micro-euro, rounded half up, where `per` units cost `rate`."""
    return (2 * rate * quantity + per) // (2 * per) if rate else 0


def affordable_units(rate: int, balance: int, per: int) -> int | None:
    """The most units whose `usage_cost` the balance pays; None: it costs nothing."""
    if rate <= 0:
        return None
    return (2 * per * balance + per - 1) // (2 * rate) if balance > 0 else 0


def counted_usage_type(world: World, line: Line, package: Package, usage_type: int) -> int:
    """The counter a use goes to: with a single counter incoming calls count as outgoing ones."""
    if usage_type not in (MTC, MTC_VOIP):
        return usage_type
    template = world.templates.get(package.template_id)
    single = world.resellers[line.reseller_id].single_counter or (template is not None and template.single_counter)
    return MOC if single else usage_type


def covers_destination(world: World, package: Package, usage_type: int, other_party: str | None) -> bool:
    """A package with a destination list pays only outgoing calls to it. Choice: an unknown number is not on the list."""
    if usage_type not in (MOC, MOC_VOIP) or package.destination_id is None:
        return True
    destination = world.destinations.get(package.destination_id)
    return destination is not None and other_party is not None and other_party.lstrip("+").startswith(destination.prefixes)


def push_package_usage(
    world: World, line: Line, package: Package, usage_type: int, used: tuple[int, int], percent: int, limit: int
) -> None:
    """A package's use went over a threshold, from `used[0]` to `used[1]` units. Percentage and threshold are strings on the wire."""
    body: dict[str, object] = {
        "unitsBefore": used[0],
        "unitsAfter": used[1],
        "thresholdPercentage": str(percent),
        "thresholdUnits": str(limit * percent // 100),
        "subscriberPackageId": package.id,
        "totalUnits": limit,
        "subscriberId": line.id,
        "subscriberIMSI": line.imsi,
        "usageType": USAGE_NAMES[usage_type],
    }
    world.queue_push(world.resellers[line.reseller_id].push.usage_url, {"subscriberPrepaidPackage": body})
