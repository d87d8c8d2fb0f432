"""Ids that the payment processor gives: letters, digits and underscores."""

from typing import Annotated

from pydantic import Field

ProcessorId = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9_]+$")]
After = Annotated[str | None, Field(max_length=255, pattern=r"^[A-Za-z0-9_]*$", description="Last id of the page before.")]
