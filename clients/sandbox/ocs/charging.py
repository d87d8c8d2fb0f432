"""What a use costs and who pays: packages by priority, then the green zone, then a balance (ocs.md 5, rule 7)."""

from bisect import insort
from dataclasses import dataclass, field

from clients.sandbox.ocs import coverage, green, pushes, radio, recurring, tariffs, throttling
from clients.sandbox.ocs.entities import (
    DATA,
    MO_SMS,
    MOC,
    MOC_VOIP,
    MT_SMS,
    MTC,
    MTC_VOIP,
    Account,
    Cdr,
    Line,
    NetworkEvent,
    Package,
    Refused,
    Reseller,
    Transaction,
)
from clients.sandbox.ocs.places import Network
from clients.sandbox.ocs.prices import TariffRule
from clients.sandbox.ocs.state import World

KINDS = (MOC, MTC, MO_SMS, MT_SMS, DATA, MOC_VOIP, MTC_VOIP)


@dataclass(slots=True)
class Use:
    """One use while it is being charged."""

    world: World
    line: Line
    reseller: Reseller
    account: Account
    network: Network
    usage_type: int
    at: int
    other_party: str | None
    session: str
    buy: TariffRule | None
    rest: int
    cdrs: list[Cdr] = field(default_factory=list[Cdr])


def use(
    world: World, line: Line, usage_type: int, quantity: int, *, network_id: int, at: int | None = None, other_party: str | None = None
) -> list[Cdr]:
    """Use a service as a phone would; refused when the line may not (14) or nobody pays for any of it (14)."""
    if usage_type not in KINDS or quantity < 1:
        raise Refused(2, f"Usage type {usage_type} with quantity {quantity}: a known type and at least 1 are needed")
    if network_id not in world.networks:
        raise Refused(6, f"Network {network_id} not found")
    if not may_use(line, usage_type):
        raise Refused(14, f"Subscriber {line.id} is {line.status} or usage type {usage_type} is not allowed")
    cdrs = serve(world, line, usage_type, quantity, network_id, world.now if at is None else at, other_party)
    if not cdrs:
        raise Refused(14, f"No package of subscriber {line.id} covers this use and no balance pays for it")
    return cdrs


def may_use(line: Line, usage_type: int) -> bool:
    """Only ACTIVE lines use services, each only what it is allowed; incoming messages always."""
    if line.status != "ACTIVE":
        return False
    if usage_type == DATA:
        return line.allowed_data
    if usage_type in (MOC, MOC_VOIP):
        return line.allowed_moc
    if usage_type in (MTC, MTC_VOIP):
        return line.allowed_mtc
    return line.allowed_mo_sms if usage_type == MO_SMS else True


def serve(world: World, line: Line, usage_type: int, quantity: int, network_id: int, at: int, other_party: str | None = None) -> list[Cdr]:
    """Charge as much of a use as somebody pays for: one record per payer, all with the same session."""
    began = _begin(world, line, usage_type, quantity, network_id, at, other_party)
    covering = coverage.covering(world, line, network_id, at)
    for package in covering:
        if began.rest == 0:
            break
        _from_package(began, package)
    if began.rest and usage_type == DATA:
        _from_green_zone(began, covering)
    if began.rest:
        _from_balance(began)
    _finish(began, covering)
    return began.cdrs


def _begin(world: World, line: Line, usage_type: int, quantity: int, network_id: int, at: int, other_party: str | None) -> Use:
    network = world.networks[network_id]
    if radio.needs_attach(line, network, at):
        radio.attach(world, line, network_id, at)
    else:
        radio.sight(line, network, at)
    reseller = world.resellers[line.reseller_id]
    buy = tariffs.rule(world, reseller.buy_tariff_id, network_id, line.sim.sponsor_id, at)
    session = f"ocs;{at};{world.next_id('session')}"
    account = world.accounts[line.account_id]
    return Use(world, line, reseller, account, network, usage_type, at, other_party, session, buy, quantity)


def _from_package(began: Use, package: Package) -> None:
    """Take what the package has left of this kind; the first use begins an undated package."""
    kind = coverage.kind_in(began.world, began.line, package, began.usage_type)
    taken = min(began.rest, coverage.left(package, kind))
    if taken == 0 or not coverage.reaches(began.world, package, began.usage_type, began.other_party):
        return
    if package.activated is None:
        recurring.begin(began.world, package, began.at)
    limit, before = coverage.counter(package, kind)
    coverage.count(package, kind, taken)
    cost = _record(began, taken, package)
    package.reseller_cost += cost
    package.parent_cost += _parent_cost(began, taken)
    _notify(began, package, kind, limit or 0, before, before + taken)


def _from_green_zone(began: Use, covering: list[Package]) -> None:
    zone = green.open_for(began.world, began.line, covering)
    if zone is not None:
        _record(began, green.take(began.line, zone, began.rest, began.at), None)


def _from_balance(began: Use) -> None:
    """The balance pays what it can and the rest does not happen. Choice: what has no price is not sold outside packages."""
    line, account, per = began.line, began.account, tariffs.unit(began.usage_type)
    rate, rule_id = _price(began)
    if rate is None:
        return
    on_account = line.use_account
    balance = account.balance if on_account else line.balance
    if on_account and account.package_only:
        balance = 0  # an account without spendable balance
    payable = tariffs.affordable(rate, balance, per)
    taken = began.rest if payable is None else min(began.rest, payable)
    if taken == 0:
        return
    cost = tariffs.cost(rate, taken, per)
    _record(began, taken, None, cost, rule_id)
    _pay(began, cost)


def _price(began: Use) -> tuple[int | None, int | None]:
    """Rate and rule of the tariff that charges the line: its own plan, else its reseller's. Choice: incoming calls over IP are free."""
    world, line, reseller = began.world, began.line, began.reseller
    if began.usage_type == MTC_VOIP:
        return 0, None
    if began.usage_type == MOC_VOIP:
        voip = tariffs.voip_rule(world, line.voip_plan_id or reseller.voip_plan_id, began.other_party)
        return (None if voip is None else voip.price), None
    sell = tariffs.rule(world, line.mobile_plan_id or reseller.mobile_plan_id, began.network.network_id, line.sim.sponsor_id, began.at)
    return tariffs.rate_of(sell, began.usage_type), None if sell is None else sell.id


def _pay(began: Use, cost: int) -> None:
    if cost == 0:
        return
    line, account = began.line, began.account
    if line.use_account:
        account.balance -= cost
        entry = Transaction(began.at, "account", account.id, -cost, account.balance, f"Usage {began.session}")
    else:
        line.balance -= cost
        entry = Transaction(began.at, "line", line.id, -cost, line.balance, f"Usage {began.session}")
    began.world.transactions.append(entry)


def _record(began: Use, quantity: int, package: Package | None, charged: int = 0, rule_id: int | None = None) -> int:
    """Write the call record and charge the reseller. Choice: the reseller's balance stops at 0 and its records are its ledger."""
    line, buy, seen = began.line, began.buy, began.line.sighting
    cost = tariffs.cost(tariffs.rate_of(buy, began.usage_type), quantity, tariffs.unit(began.usage_type))
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


def _parent_cost(began: Use, quantity: int) -> int:
    """What the parent reseller pays by its own tariff. Choice: shown on the package; only the line's own reseller is debited."""
    parent = began.world.resellers.get(began.reseller.parent_id)
    if parent is None:
        return 0
    buy = tariffs.rule(began.world, parent.buy_tariff_id, began.network.network_id, began.line.sim.sponsor_id, began.at)
    return tariffs.cost(tariffs.rate_of(buy, began.usage_type), quantity, tariffs.unit(began.usage_type))


def _notify(began: Use, package: Package, kind: int, limit: int, before: int, after: int) -> None:
    """Tell each threshold once; kinds of use are told apart, so a mark is the kind times 1000 plus the percentage."""
    target = began.reseller.push
    for percent in target.thresholds:
        mark = kind * 1000 + percent
        if after * 100 >= limit * percent and mark not in package.notified:
            package.notified |= {mark}
            if target.usage_url and before * 100 < limit * percent:
                pushes.package_usage(began.world, began.line, package, kind, (before, after), percent, limit)


def _finish(began: Use, covering: list[Package]) -> None:
    line, at = began.line, began.at
    if began.usage_type == DATA:
        _data_event(began)
        if line.throttled or any(_throttles(began.world, package) for package in covering) or line.green_updated == at:
            throttling.refresh(began.world, line, began.network.network_id, at)
    if began.cdrs:
        line.last_usage_at = max(at, line.last_usage_at or at)
        line.first_usage_at = min(at, line.first_usage_at or at)


def _throttles(world: World, package: Package) -> bool:
    template = world.templates.get(package.template_id)
    return template is not None and template.throttling


def _data_event(began: Use) -> None:
    """The credit request of a data session: its end with what was used, or the refusal to begin."""
    used = sum(part.quantity for part in began.cdrs)
    mcc, mnc = began.network.codes[began.line.id % len(began.network.codes)]
    code, result = ("CCR-T", "2001") if began.cdrs else ("CCR-I", "4012")
    radio.record(began.line, NetworkEvent(began.at, "gy", code, began.network.network_id, mcc, mnc, result, began.session, used))
