"""Tables of people who sign up, sign in and let programs act for them. Part of the schema, as those of schema.py.

Secrets that somebody presents (client tokens, cookies, codes, refresh tokens) are kept as SHA-256; what we must show or use
again (mails, client secrets, signing keys) is sealed.
"""

import sqlalchemy as sa
from sqlmodel import Field

from storage.named import Named


class VerificationTable(Named, table=True):
    """A code that was mailed: a sign-up or a sign-in that waits for it. `code_digest` covers the client's token too, which is not kept."""

    digest: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    purpose: str = Field(sa_type=sa.Text)
    address: str = Field(sa_type=sa.Text)
    code_digest: bytes = Field(sa_type=sa.LargeBinary)
    tries: int
    details: str = Field(sa_type=sa.Text)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class AllowanceTable(Named, table=True):
    """When something that is limited per hour was done last: a JSON list of Unix seconds per name. The name holds a digest, no address."""

    name: str = Field(primary_key=True, sa_type=sa.Text)
    times: str = Field(sa_type=sa.Text)
    updated: float = Field(sa_type=sa.Double, index=True)


class BrowserSessionTable(Named, table=True):
    """A person who is signed in with a browser; `digest` is of the cookie."""

    digest: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    id: str = Field(unique=True, sa_type=sa.Text)
    person_id: str = Field(foreign_key="person.id", index=True, sa_type=sa.Text)
    organisation_id: str | None = Field(default=None, sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)
    seen: float = Field(sa_type=sa.Double)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class AccessGrantTable(Named, table=True):
    """What a person let a program do: the tokens of a login name it, and nothing in them counts but that."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    person_id: str = Field(foreign_key="person.id", index=True, sa_type=sa.Text)
    organisation_id: str | None = Field(default=None, index=True, sa_type=sa.Text)
    client_id: str = Field(sa_type=sa.Text)
    client_name: str = Field(sa_type=sa.Text)
    scopes: str = Field(sa_type=sa.Text)
    resource: str = Field(sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)
    expires_at: float = Field(sa_type=sa.Double, index=True)
    revoked_at: float | None = Field(default=None, sa_type=sa.Double)


class AuthorizationRequestTable(Named, table=True):
    """A program's request that waits for the person's consent; `details` are its checked parameters, JSON."""

    digest: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    client_id: str = Field(sa_type=sa.Text)
    details: str = Field(sa_type=sa.Text)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class AuthorizationCodeTable(Named, table=True):
    """A consent on its way to the program; used once, and a second use ends the grant."""

    digest: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    grant_id: str = Field(foreign_key="access_grant.id", sa_type=sa.Text)
    client_id: str = Field(sa_type=sa.Text)
    details: str = Field(sa_type=sa.Text)
    used_at: float | None = Field(default=None, sa_type=sa.Double)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class RefreshTokenTable(Named, table=True):
    """A refresh token: used once, and a second use ends the grant."""

    digest: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    grant_id: str = Field(foreign_key="access_grant.id", index=True, sa_type=sa.Text)
    client_id: str = Field(sa_type=sa.Text)
    scopes: str = Field(sa_type=sa.Text)
    used_at: float | None = Field(default=None, sa_type=sa.Double)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class OauthClientTable(Named, table=True):
    """A program that registered itself (RFC 7591). `secret` is sealed; public clients have none. `used`: when it last got a consent.

    `network` and `address` are digests of where it registered from; None where that was before they were kept.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    metadata_json: str = Field(sa_type=sa.Text)
    secret: str | None = Field(default=None, sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double, index=True)
    used: float | None = Field(default=None, sa_type=sa.Double)
    network: str | None = Field(default=None, index=True, sa_type=sa.Text)
    address: str | None = Field(default=None, sa_type=sa.Text)


class SigningKeyTable(Named, table=True):
    """A key that signs tokens: `private` is sealed, `public` is its JWK. A retired one is published until its tokens have expired.

    `number` counts them, so that of all processes that make the next one at once only one does.
    """

    kid: str = Field(primary_key=True, sa_type=sa.Text)
    number: int = Field(unique=True)
    private: str = Field(sa_type=sa.Text)
    public: str = Field(sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)
    retired: float | None = Field(default=None, sa_type=sa.Double)


class MailTable(Named, table=True):
    """A mail that is to be sent, sealed whole: it holds an address and often a code. The row goes when it was sent."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    sealed: str = Field(sa_type=sa.Text)
    attempts: int
    due_ms: int = Field(sa_type=sa.BigInteger, index=True)
    lease: str | None = Field(default=None, sa_type=sa.Text)
    expires_at: float = Field(sa_type=sa.Double)


class InvitationTable(Named, table=True):
    """Somebody was asked to join an organisation. Whoever proves to read the address's mail may accept: the mail holds no secret."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation_id: str = Field(foreign_key="organisation.id", index=True, sa_type=sa.Text)
    address: str = Field(index=True, sa_type=sa.Text)
    role: str = Field(sa_type=sa.Text)
    invited_by: str = Field(sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)
    expires_at: float = Field(sa_type=sa.Double)
    __table_args__ = (sa.UniqueConstraint("organisation_id", "address", name="invitation_once"),)
