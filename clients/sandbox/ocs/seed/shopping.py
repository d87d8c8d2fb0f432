"""Which package a customer picks."""

from typing import NamedTuple

from clients.sandbox.ocs.dice import Random
from clients.sandbox.ocs.entities import MEBIBYTE, Line, Persona, Template
from clients.sandbox.ocs.seed.personas import Kind
from clients.sandbox.ocs.seed.zones import countries_of
from clients.sandbox.ocs.state import World

SIZES: dict[Kind, tuple[int, int]] = {
    "traveller": (500, 3072),
    "commuter": (1024, 5120),
    "heavy": (3072, 20480),
    "tracker": (0, 512),
    "dormant": (0, 1024),
    "stock": (0, 0),
}
"""MiB a kind of customer looks for."""


class Offer(NamedTuple):
    """A template, and where it works."""

    template: Template
    countries: frozenset[str]


class Shop:
    """The offers of a world."""

    def __init__(self, world: World) -> None:
        """What is not deleted."""
        on_sale = [template for template in world.templates.values() if not template.deleted]
        self.offers = [Offer(template, countries_of(world.zones[template.zone_id], world.networks)) for template in on_sale]

    def pick(self, chance: Random, line: Line) -> Template | None:
        """Something that works at home, mostly everywhere the line goes, and has about the right size."""
        places = {line.persona.home_iso2, *line.persona.travel_iso2}
        at_home = [offer for offer in self.fitting(line) if line.persona.home_iso2 in offer.countries]
        everywhere = [offer for offer in at_home if places <= offer.countries]
        found = everywhere if everywhere and chance.random() < 0.85 else at_home
        sized = [offer for offer in found if wanted_size(line.persona, offer.template)] or found
        return chance.choice(sized).template if sized else None

    def fitting(self, line: Line) -> list[Offer]:
        """What this SIM can have."""
        wanted = line.reseller_id, line.sim.sponsor_id
        return [offer for offer in self.offers if (offer.template.reseller_id, offer.template.sponsor_id) == wanted]


def wanted_size(persona: Persona, template: Template) -> bool:
    """Whether a package is neither too small nor too large."""
    low, high = SIZES[persona.kind]
    months = 30 / template.period_days if template.recurring else 1  # a day pass is not a small package, it comes every day
    return low * MEBIBYTE <= (template.data_bytes or 0) * months <= high * MEBIBYTE
