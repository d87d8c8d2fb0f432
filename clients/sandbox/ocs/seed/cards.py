"""The SIMs of the fleet: profiles and cards, and what their provider said of them so far."""

from itertools import pairwise

from clients.sandbox.ocs.dice import Random
from clients.sandbox.ocs.entities import ProviderRow, Sim
from clients.sandbox.ocs.seed.identity import activation_code, digits, eid
from clients.sandbox.ocs.seed.sponsors import LUMEN, MERIDIAN, SPX

PROFILE_TYPE = "P1"
HOSTS = {SPX: "smdp.spx-roaming.test", MERIDIAN: "rsp.meridian-m2m.test", LUMEN: "smdp.lumen-travel.test"}
STEPS = (("Released", 0), ("Downloaded", 340), ("Installed", 395), ("Enable", 460))
"""What follows an issue, and after how many seconds."""


def free_sim(chance: Random, number: int, serial: int, sponsor_id: int, *, esim: bool) -> Sim:
    """A SIM nobody has yet; a plastic card has nothing to download."""
    secrets = digits(chance, 4), digits(chance, 8), digits(chance, 4), digits(chance, 8)
    code, chip = activation_code(chance, serial), eid(chance, serial)
    confirmation = digits(chance, 6) if chance.random() < 0.04 else None
    host = HOSTS[sponsor_id]
    if not esim:
        return Sim(number, False, sponsor_id, "FREE", "", "", *secrets, eid="")
    return Sim(number, True, sponsor_id, "FREE", host, code, *secrets, eid=chip, confirmation_code=confirmation)


def issue(sim: Sim, at: int) -> None:
    """The SIM was taken into use before the history begins."""
    sim.status, sim.affected_at = "AFFECTED", at
    steps = STEPS if sim.esim else STEPS[:1]
    sim.provider = [ProviderRow(status, at + delay, PROFILE_TYPE) for status, delay in steps]
    for earlier, later in pairwise(sim.provider):
        earlier.end = later.start
