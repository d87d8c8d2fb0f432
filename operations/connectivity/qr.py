"""The activation code of an eSIM as a picture that a phone's camera reads."""

from typing import Annotated, Literal

from pydantic import Field

from operations.connectivity.intents import IntentRef, get_connectivity_intent, no_such_intent
from operations.deps import Ctx
from operations.services.issuing.esim_profile import open_profile
from operations.services.issuing.qr_picture import picture
from registry.errors import Conflict, NotFound
from registry.model import Document
from registry.operation import Example, operation
from storage.issuing.intents import IntentRow, find_intent

MEDIA = {"svg": "image/svg+xml", "png": "image/png"}


class EsimNotIssued(Conflict):
    """The intent has no eSIM yet."""

    code = "esim_not_issued"


class QrRef(IntentRef):
    """Which intent's code, and as what."""

    format: Annotated[Literal["svg", "png"], Field(description="Kind of picture.")]


@operation(
    "GET",
    "/v1/connectivity/intents/{id}/qr.{format}",
    tool=False,
    title="Get QR code",
    raises=[NotFound, EsimNotIssued],
    examples=[Example("The code as a picture for a web page", {"id": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t", "format": "svg"})],
)
async def get_connectivity_intent_qr(ctx: Ctx, params: QrRef) -> Annotated[Document, "image/svg+xml", "image/png"]:
    """Get the activation code of an issued eSIM as a QR picture.

    The picture holds the activation code: show it to the buyer and nobody else. It is not to be cached.
    """
    row = await ctx.deps.store.read(find_intent, intent=params.id, organisation=ctx.organisation)
    if row is None:
        raise no_such_intent("id")
    code = activation_code(ctx, row)
    return Document(picture(code, params.format), MEDIA[params.format], {"Cache-Control": "no-store"})


def activation_code(ctx: Ctx, row: IntentRow) -> str:
    """What the picture shows, once there is an eSIM."""
    if row.iccid is not None and row.esim is not None:
        profile = open_profile(row.iccid, row.esim, keyring=ctx.deps.keyring, organisation=row.organisation, intent=row.id)
        if profile.activation_code is not None:
            return profile.activation_code
    raise not_issued(row.status, "id")


def not_issued(status: str, param: str) -> EsimNotIssued:
    """What to do first."""
    first = "give it a plan with confirm_connectivity_intent" if status == "requires_plan" else f"read it with {get_connectivity_intent.id}"
    return EsimNotIssued(f"This intent is {status} and has no eSIM yet", param=param, hint=f"First {first}")
