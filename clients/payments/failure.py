"""How calls of the processor fail, beyond the common PaymentsError."""

from registry.payments_errors import PaymentsError

OPERATOR = "This is for the service's operator: `reseller doctor` checks the key."


class KeyRefused(PaymentsError):
    """The processor does not know the service's key, or the key may not do this. Nothing was done."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} {OPERATOR}", before_execution=True)


class AccountDetached(PaymentsError):
    """The connected account has let the service go, or never let it in. Nothing was done."""

    def __init__(self) -> None:
        text = "The connected account is no longer attached to the service at the payment processor. Connect it again."
        super().__init__(text, before_execution=True)
