"""Tables of how an organisation sets itself up, and of who brought it. Part of the schema, as those of schema.py."""

import sqlalchemy as sa
from sqlmodel import Field

from storage.named import Named


class OnboardingTable(Named, table=True):
    """How far an organisation has come: when each step was done, Unix seconds."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id", sa_type=sa.Text)
    website: str | None = Field(default=None, sa_type=sa.Text)
    country: str | None = Field(default=None, sa_type=sa.Text)
    operator_type: str | None = Field(default=None, sa_type=sa.Text)
    org_saved_at: float | None = Field(default=None, sa_type=sa.Double)
    managed_chosen_at: float | None = Field(default=None, sa_type=sa.Double)
    pending_reason: str | None = Field(default=None, sa_type=sa.Text)
    template_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    plan_name: str | None = Field(default=None, sa_type=sa.Text)
    plan_saved_at: float | None = Field(default=None, sa_type=sa.Double)
    plan_skipped_at: float | None = Field(default=None, sa_type=sa.Double)
    test_esim: str | None = Field(default=None, sa_type=sa.Text)
    test_esim_at: float | None = Field(default=None, sa_type=sa.Double)
    completed_at: float | None = Field(default=None, sa_type=sa.Double)


class FormerTokenTable(Named, table=True):
    """The own token that another own token replaced, sealed as it was, until `expires_at` (Unix seconds)."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id", sa_type=sa.Text)
    sealed: str = Field(sa_type=sa.Text)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class AffiliateTable(Named, table=True):
    """An organisation in the affiliate programme."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id", sa_type=sa.Text)
    code: str = Field(unique=True, sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)


class ReferralTable(Named, table=True):
    """Who brought an organisation: one affiliate, for ever."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id", sa_type=sa.Text)
    affiliate: str = Field(foreign_key="organisation.id", index=True, sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)


class PlatformFeeTable(Named, table=True):
    """A platform fee that an organisation owes: what commissions are made of. `ref` makes a repeated record have no effect."""

    ref: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(index=True, sa_type=sa.Text)
    month: str = Field(sa_type=sa.Text)
    currency: str = Field(sa_type=sa.Text)
    amount: int = Field(sa_type=sa.BigInteger)
    created: float = Field(sa_type=sa.Double)


class CommissionTable(Named, table=True):
    """An affiliate's share of one referred organisation's fees of one month; amounts in minor units."""

    affiliate: str = Field(primary_key=True, sa_type=sa.Text)
    month: str = Field(primary_key=True, sa_type=sa.Text)
    currency: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    id: str = Field(unique=True, sa_type=sa.Text)
    fees: int = Field(sa_type=sa.BigInteger)
    amount: int = Field(sa_type=sa.BigInteger)
    updated: float = Field(sa_type=sa.Double)
