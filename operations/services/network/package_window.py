"""Which package, and when it runs: from now for some days, between two dates, or from its first use."""

from typing import Annotated, Self

from pydantic import AliasChoices, Field, model_validator

from clients.ocs.moment import wire_time
from clients.ocs.wire.package import Period
from operations.services.network.utc_moment import EndMoment, StartMoment
from registry.errors import BadRequest
from registry.model import CamelInput

MOST = 9_007_199_254_740_991
MOST_DAYS = 3650  # Choice: ten years; whoever means more has miscounted


class ActivePeriod(CamelInput):
    """Two dates."""

    start: Annotated[StartMoment, Field(description="UTC.")]
    end: Annotated[EndMoment, Field(description="UTC, after start.")]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end <= self.start:
            raise BadRequest(
                f"activePeriod.end: {wire_time(self.end)} is not after start, {wire_time(self.start)}",
                param="activePeriod.end",
                hint="Send an end that is later than the start, both in UTC",
            )
        return self


class PackageWindow(CamelInput):
    """A template, and one way to say when its package runs."""

    package_template_id: Annotated[
        int,
        Field(
            ge=1,
            le=MOST,
            validation_alias=AliasChoices("packageTemplateId", "templateId", "template_id"),
            description="Id of list_package_templates.",
        ),
    ]
    validity_period: Annotated[int | None, Field(ge=1, le=MOST_DAYS, description="Days from now, 1-3650.")] = None
    active_period: Annotated[ActivePeriod | None, Field(description="Exact dates instead.")] = None

    @model_validator(mode="after")
    def _one_window(self) -> Self:
        if self.validity_period is not None and self.active_period is not None:
            raise BadRequest(
                "activePeriod: given together with validityPeriod, and they exclude each other",
                param="activePeriod",
                hint="Send validityPeriod (days from now) or activePeriod (two dates); neither means from the first use",
            )
        return self

    @property
    def period(self) -> Period | None:
        """The dates as the wire writes them."""
        dates = self.active_period
        return None if dates is None else {"start": wire_time(dates.start), "end": wire_time(dates.end)}
