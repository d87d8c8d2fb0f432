"""What a unit costs: the rule that counts, and whole micro-euro rounded half up."""

from clients.sandbox.ocs.entities import DATA, MEBIBYTE, MO_SMS, MOC, MT_SMS, MTC
from clients.sandbox.ocs.prices import Tariff, TariffRule, VoipRule
from clients.sandbox.ocs.state import World


def rule(world: World, tariff_id: int | None, network_id: int, sponsor_id: int, at: int) -> TariffRule | None:
    """The active rule of a network: one for this sponsor wins over one for any; the newest that has begun counts."""
    tariff = world.tariffs.get(tariff_id) if tariff_id is not None else None
    if tariff is None:
        return None
    if tariff.indexed is not tariff.rules:
        _index(tariff)
    for key in ((network_id, sponsor_id), (network_id, None)):
        for found in tariff.index.get(key, ()):
            if found.active and found.start <= at:
                return found
    return None


def rate_of(found: TariffRule | None, usage_type: int) -> int | None:
    """The rule's rate for a kind of use; None: not sold."""
    if found is None:
        return None
    if usage_type == DATA:
        return found.data_rate
    if usage_type == MOC:
        return found.moc_rate
    if usage_type == MTC:
        return found.mtc_rate
    if usage_type == MO_SMS:
        return found.mo_sms_rate
    return found.mt_sms_rate if usage_type == MT_SMS else None


def voip_rule(world: World, plan_id: int | None, other_party: str | None) -> VoipRule | None:
    """The longest prefix of the called number wins."""
    plan = world.voip_tariffs.get(plan_id) if plan_id is not None else None
    if plan is None or other_party is None:
        return None
    return max((row for row in plan.rules if other_party.startswith(row.prefix)), key=lambda row: len(row.prefix), default=None)


def unit(usage_type: int) -> int:
    """How many units a rate pays for: a mebibyte, a minute (charged by the second), one message."""
    if usage_type == DATA:
        return MEBIBYTE
    return 1 if usage_type in (MO_SMS, MT_SMS) else 60


def cost(rate: int | None, quantity: int, per: int) -> int:
    """Rounded half up to a micro-euro."""
    return (2 * rate * quantity + per) // (2 * per) if rate else 0


def affordable(rate: int, balance: int, per: int) -> int | None:
    """The most units whose `cost` the balance pays; None: it costs nothing."""
    if rate <= 0:
        return None
    return (2 * per * balance + per - 1) // (2 * rate) if balance > 0 else 0


def _index(tariff: Tariff) -> None:
    tariff.index = {}
    for row in sorted(tariff.rules, key=lambda row: -row.start):
        tariff.index.setdefault((row.network_id, row.sponsor_id), []).append(row)
    tariff.indexed = tariff.rules
