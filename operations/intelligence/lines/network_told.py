"""A mobile network as reports name it."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.coverage.map import Code, KnownNetwork


class NetworkTold(TypedDict):
    """A network by its codes."""

    mcc: str
    mnc: str
    operator: NotRequired[Annotated[str, Field(description="As the charging system writes it")]]


def told(network: KnownNetwork | None, code: Code | None) -> NetworkTold:
    """The network by the code that was seen, as any look at the line shows it; by its first one where none was."""
    if network is None:
        mcc, mnc = code or (0, 0)
        return {"mcc": f"{mcc:03d}", "mnc": f"{mnc:02d}"}
    if code is None:
        return {"mcc": network.mcc, "mnc": network.mnc, "operator": network.operator}
    return {"mcc": f"{code[0]:03d}", "mnc": f"{code[1]:0{len(network.mnc)}d}", "operator": network.operator}
