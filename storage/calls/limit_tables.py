"""Tables of the limits that processes share: who counts, what is left in each bucket, and who has which places."""

import sqlalchemy as sa
from sqlmodel import Field

from storage.named import Named


class LimitProcessTable(Named, table=True):
    """A process that counts calls. `alone`: 1 while it counts by itself. The row without a name is locked by every report."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    lease_end: float = Field(sa_type=sa.Double)
    alone: int = Field(sa_type=sa.Integer)


class LimitBucketTable(Named, table=True):
    """A token bucket that is not full: its tokens at the moment `at`; it is full again at `full_at`. The name is a digest."""

    name: str = Field(primary_key=True, sa_type=sa.Text)
    tokens: float = Field(sa_type=sa.Double)
    at: float = Field(sa_type=sa.Double)
    full_at: float = Field(sa_type=sa.Double)


class LimitPlaceTable(Named, table=True):
    """Places of a process for calls under way at once; how many more it wants, and since when."""

    name: str = Field(primary_key=True, sa_type=sa.Text)
    process: str = Field(primary_key=True, sa_type=sa.Text)
    held: int = Field(sa_type=sa.Integer)
    wanted: int = Field(sa_type=sa.Integer)
    since: float = Field(sa_type=sa.Double)
