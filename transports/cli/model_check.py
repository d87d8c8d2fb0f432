"""Whether the language model's endpoint answers, accepts the key and has the models that are named: `doctor` asks."""

import asyncio
from typing import cast

import orjson

from clients.failure import OutboundFailed
from clients.http import Outbound, OutboundLimits
from transports.cli.certificate_check import unanswered
from transports.cli.finding import Finding
from transports.settings import Settings

SECONDS = 5.0
ELSEWHERE = "check SERVICE_MODEL_URL, and that this machine may reach it"
KEY = "set SERVICE_MODEL_KEY to a key of this endpoint"


def model(settings: Settings) -> Finding:
    """None, or asked for its list of models, which costs nothing."""
    if not settings.model_url:
        return Finding("model", "none: the assistant answers nothing, insights are measured; SERVICE_MODEL_URL names one")
    try:
        status, body = asyncio.run(models(settings))
    except OutboundFailed as failed:
        return unanswered("model", settings.model_url, f"it does not answer ({failed.kind})", ELSEWHERE, settings)
    if status in (401, 403):
        return Finding("model", f"{settings.model_url} does not accept our key", KEY)
    if status >= 400:  # not every endpoint has a list
        return Finding("model", f"{settings.model_url} answers {status} when asked for its models, so nothing is known of the names")
    known = names(body)
    missing = [name for name in settings.model_name if known and name not in known]
    if missing:
        return Finding("model", f"{settings.model_url} lists no model {', '.join(missing)}", "set SERVICE_MODEL_NAME to names it has")
    return Finding("model", f"{settings.model_url} accepts our key, {', '.join(settings.model_name)}")


async def models(settings: Settings) -> tuple[int, bytes]:
    """What it says of its models."""
    key = settings.model_key.get_secret_value()
    outbound = Outbound(OutboundLimits(total_seconds=SECONDS), ca_file=settings.ca_file)
    try:
        headers = {"accept": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        reply = await outbound.exchange("GET", settings.model_url.rstrip("/") + "/models", headers=headers)
        return reply.status, reply.body
    finally:
        await outbound.aclose()


def names(body: bytes) -> list[str]:
    """The names in a list of models; none where it is no such list."""
    try:
        listed = cast(object, orjson.loads(body))
    except orjson.JSONDecodeError:
        return []
    rows = cast("dict[str, object]", listed).get("data") if isinstance(listed, dict) else None
    ids = [cast("dict[str, object]", row).get("id") for row in cast("list[object]", rows)] if isinstance(rows, list) else []
    return [id for id in ids if isinstance(id, str)]
