"""An eSIM that the charging system gave: what its answer said of it, or what was found out later."""

from typing import NamedTuple

from clients.ocs.wire.package import Affected
from clients.ocs.wire.subscriber import Sim
from operations.services.issuing.esim_profile import Profile
from storage.issuing.issuance import Drawn


class DrawnEsim(NamedTuple):
    """All but the ICCID and the numbers is a secret of whoever installs it."""

    iccid: str
    smdp: str | None
    code: str | None
    qr: str | None
    subscriber_id: int | None
    sim_id: int | None
    package_id: int | None
    name: str | None

    @property
    def drawn(self) -> Drawn:
        """What the ledger keeps of it."""
        return Drawn(self.iccid, self.subscriber_id, self.sim_id, self.package_id)

    @property
    def profile(self) -> Profile:
        """What an intent keeps of it."""
        return Profile(self.iccid, self.qr, self.smdp, self.code)


def install_code(smdp: str | None, code: str | None) -> str | None:
    """The text of a QR code (SGP.22 4.1)."""
    return f"LPA:1${smdp}${code}" if smdp and code else None


def phone_code(code: str | None, smdp: str | None, matching: str | None) -> str | None:
    """What a phone takes; put together where the charging system has put something else where it belongs."""
    return code if code is not None and code.startswith("LPA:") else install_code(smdp, matching)


def answered_esim(made: Affected) -> DrawnEsim:
    """What the answer to a draw said. The wire's shape has checked that the ICCID and the package are there."""
    smdp, code = made.get("smdpServer"), made.get("activationCode")
    return DrawnEsim(
        iccid=made.get("iccid", ""),
        smdp=smdp,
        code=code,
        qr=made.get("urlQrCode") or install_code(smdp, code),
        subscriber_id=made.get("subscriberId"),
        sim_id=made.get("esimId"),
        package_id=made.get("subsPackageId"),
        name=made.get("userSimName"),
    )


def found_esim(iccid: str, sim: Sim, *, subscriber_id: int, package_id: int) -> DrawnEsim:
    """What was read of a line that turned out to be the one that was drawn."""
    smdp, code = sim.get("smdpServer"), sim.get("activationCode")
    return DrawnEsim(
        iccid=iccid,
        smdp=smdp,
        code=code,
        qr=install_code(smdp, code),
        subscriber_id=subscriber_id,
        sim_id=sim.get("id"),
        package_id=package_id,
        name=None,
    )
