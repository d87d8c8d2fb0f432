"""How tables are named."""

import re

from sqlalchemy.orm import declared_attr
from sqlmodel import SQLModel


class Named(SQLModel):
    """Names a table after its class: WebhookEndpointTable is webhook_endpoint."""

    # SQLModel types the attribute as a descriptor and takes a declared_attr all the same; checkers cannot see that.
    @declared_attr.directive
    def __tablename__(cls) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Table")).lower()
