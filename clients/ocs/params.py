"""How requests name a line: the nesting differs by method, and the wrong one is refused."""

from collections.abc import Mapping
from typing import Literal

Identifier = Literal["subscriberId", "imsi", "iccid", "msisdn", "activationCode"]
SearchKey = Literal["imsiPrefix", "iccidPrefix", "msisdnPrefix", "accountId", "activationCode"]
Params = dict[str, object]
Payload = Mapping[str, object] | int
"""What stands under the method's name: some methods take a bare id."""


def given(**members: object) -> Params:
    """The members that have a value: the wire omits the others."""
    return {name: value for name, value in members.items() if value is not None}


def flat(subscriber_id: int) -> Params:
    """The identifier among the parameters."""
    return {"subscriberId": subscriber_id}


def nested(subscriber_id: int, **members: object) -> Params:
    """The identifier in an object of its own."""
    return {"subscriber": {"subscriberId": subscriber_id}, **given(**members)}


def under_id(subscriber_id: int, **members: object) -> Params:
    """The identifier in an object under the key `subscriberId`, as the two plan changes want it."""
    return {"subscriberId": {"subscriberId": subscriber_id}, **given(**members)}
