"""How calls of the charging system fail, beyond the common OcsError."""

from registry.errors import OcsBadRequest, OcsError


class OcsNotFound(OcsError):
    """The thing named does not exist, or belongs to someone else: codes 6 and 11, which we tell nobody apart."""


class OcsUnknownName(OcsBadRequest, OcsNotFound):
    """A write named something that does not exist, or belongs to someone else."""


class Unreadable(Exception):
    """An answer that breaks the wire's shape. The text is ours and never leaves the client's log."""
