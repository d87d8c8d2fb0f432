"""What use of a network costs by a tariff: what the operator pays the network, or what a customer pays the operator outside packages."""

from collections.abc import Iterable, Mapping

import anyio.to_thread

from clients.ocs.tariffs import TariffRule
from operations.deps import Ctx
from operations.upstream.connection import Upstream
from operations.upstream.tariffs import read_tariff_rules, rules_in_force
from operations.upstream.usage import USE_KINDS, UseKind, micro_euros

VOIP_USAGE_TYPES = frozenset({40, 41})
"""Calls over IP: their price is that of the number, whatever the network."""
RATE_MEMBERS: Mapping[UseKind, str] = {
    "data": "datarate",
    "calls_out": "mocallrate",
    "calls_in": "mtcallrate",
    "sms_out": "mosmsrate",
    "sms_in": "mtsmsrate",
}
RATE_UNITS: Mapping[UseKind, int] = {"data": 1 << 20, "calls_out": 60, "calls_in": 60, "sms_out": 1, "sms_in": 1}
"""What a rate pays for: bytes, seconds or messages."""
ANY_SPONSOR = -1
RATE_CURRENCY = "EUR"


class NetworkRates:
    """The rates of a tariff that are in force: one for the SIM's sponsor goes before one for any sponsor.

    A network without an active rule has no rate, which is not a rate of 0: what use of it costs is then not known. Choice: a data rate of
    0 was never filled in, and a rate in another currency than EUR cannot be compared.
    """

    def __init__(self, rules: Iterable[TariffRule], now: float) -> None:
        self._rates: dict[tuple[int, int | None], Mapping[UseKind, int]] = {}
        for rule in rules_in_force(rules, now):
            sponsor = rule.get("sponsorid")
            network = rule.get("networkid", rule.get("operator", {}).get("networkId", 0))
            self._rates[network, None if sponsor == ANY_SPONSOR else sponsor] = rule_rates(rule)

    def rate(self, network_id: int, sponsor: int | None, kind: UseKind) -> int | None:
        """Micro-euros per MiB, minute or message; None: not known."""
        found = self._rates.get((network_id, sponsor))
        if found is None:
            found = self._rates.get((network_id, None), {})
        return found.get(kind)

    def amount(self, network_id: int, sponsor: int | None, usage_type: int, quantity: int) -> int | None:
        """What so much use costs, micro-euros, rounded up; None: not known. `quantity`: bytes, seconds or messages."""
        kind = USE_KINDS.get(usage_type)
        rate = None if kind is None or usage_type in VOIP_USAGE_TYPES else self.rate(network_id, sponsor, kind)
        return None if rate is None or kind is None else -(-rate * quantity // RATE_UNITS[kind])


def rule_rates(rule: TariffRule) -> Mapping[UseKind, int]:
    if rule.get("currency", {}).get("currencycode", RATE_CURRENCY) != RATE_CURRENCY:
        return {}
    members: dict[str, object] = {**rule}
    found: dict[UseKind, int] = {}
    for kind, name in RATE_MEMBERS.items():
        told = members.get(name)
        if isinstance(told, int | float) and (told > 0 or (told == 0 and kind != "data")):
            found[kind] = micro_euros(told)
    return found


async def read_buying_rates(ctx: Ctx, upstream: Upstream) -> NetworkRates:
    """What the caller's reseller pays. A tariff has thousands of rules, so they are handled in a thread. Waits for the network."""
    rules = await read_tariff_rules(upstream, await upstream.reseller_id())
    return await anyio.to_thread.run_sync(NetworkRates, rules, ctx.now)


async def read_selling_rates(ctx: Ctx, upstream: Upstream) -> NetworkRates | None:
    """What customers pay outside packages, by the mobile plan of the caller's reseller; None where it has none. Waits for the network.

    A line may have a plan of its own, which the charging system does not tell: whether these rates are a line's, its records say.
    """
    plan = (await upstream.reseller()).get("chargingInfo", {}).get("mobilePlan", {}).get("id")
    if plan is None:
        return None
    rules = await upstream.reads.get((upstream.identity, "tariff_rules", plan), lambda: upstream.ocs.tariffs.list_rules(plan))
    return await anyio.to_thread.run_sync(NetworkRates, rules, ctx.now)
