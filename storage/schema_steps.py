"""Beside which programs each schema version may be in use: what a program of the version before reads of one that it does not know."""

import sqlalchemy as sa
from sqlmodel import Field

from storage.named import Named


class SchemaStepTable(Named, table=True):
    """A migration that was made. `works_from`: the oldest version whose programs work on what it left."""

    revision: str = Field(primary_key=True, sa_type=sa.Text)
    works_from: str = Field(sa_type=sa.Text)
