"""What binds each sealed value to its row: the `field` its writers, its readers and `rekey` name to the keyring."""

OWN_TOKEN_FIELD = "own_token"
"""An organisation's own token, and the former one: a change moves one to the other's table, so both are bound alike."""

TYPED_TOKEN_FIELD = "typed_own_token"
"""An own token that waits in a form until its change is confirmed."""


def esim_field(intent: str) -> str:
    """The eSIM of an intent, or of a shop's order."""
    return f"esim|{intent}"


def webhook_secret_field(endpoint: str) -> str:
    """A webhook endpoint's signing secrets: a rotation moves one to the other column, so both are bound alike."""
    return f"webhook|{endpoint}"


def claim_field(operation: str, key: str) -> str:
    """The stored answer of an idempotency key."""
    return f"claim|{operation}|{key}"


def mail_field(mail: str) -> str:
    """A mail that waits to be sent."""
    return f"mail|{mail}"


def client_secret_field(client: str) -> str:
    """The secret of a program that registered itself."""
    return f"client|{client}"


def signing_key_field(kid: str) -> str:
    """The private half of a key that signs tokens."""
    return f"signing|{kid}"
