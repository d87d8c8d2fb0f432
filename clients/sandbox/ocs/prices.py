"""What use costs in the simulated network; rates are whole micro-euro."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple


class TariffRule(NamedTuple):
    """What one network costs; rates in micro-euro per MiB, minute or message. `sponsor_id` None is any sponsor."""

    id: int
    tariff_id: int
    network_id: int
    sponsor_id: int | None
    active: bool
    data_rate: int | None
    moc_rate: int | None
    mtc_rate: int | None
    mo_sms_rate: int | None
    mt_sms_rate: int | None
    start: int
    discounted: bool = False
    hidden: bool = False
    daily_cap: int = 0


@dataclass(slots=True)
class Tariff:
    """A price list: RESELLER is what the reseller pays, SUBSCRIBER what it charges."""

    id: int
    name: str
    reseller_id: int
    kind: Literal["RESELLER", "SUBSCRIBER"]
    rules: tuple[TariffRule, ...]
    indexed: tuple[TariffRule, ...] = field(default=(), repr=False, compare=False)
    """The rules that `index` was made of."""
    index: dict[tuple[int, int | None], list[TariffRule]] = field(
        default_factory=dict[tuple[int, int | None], list[TariffRule]], repr=False, compare=False
    )
    """Rules by network and sponsor, newest first; kept by the rate look-up."""


class VoipRule(NamedTuple):
    """A price per minute by called prefix, in micro-euro."""

    prefix: str
    country: str
    price: int
    start: int


class VoipTariff(NamedTuple):
    """A price list for calls over IP."""

    id: int
    name: str
    reseller_id: int
    provider: str | None
    deleted: bool
    cost_plan: bool
    max_rate: int
    rules: tuple[VoipRule, ...]
