"""A refusal in OAuth's own words (RFC 6749 sections 4.1.2.1 and 5.2)."""


class OauthError(Exception):
    """What a program is told. The description is ours and never repeats what was sent."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error)
        self.error, self.description, self.status = error, description, status
