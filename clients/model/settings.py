"""Where the model is, and how long and how much is listened to."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """An OpenAI-compatible endpoint: the address that ends before /chat/completions, and the names of its models, the default first."""

    url: str
    names: tuple[str, ...]
    key: str = field(default="", repr=False)
    """Empty: it asks for none."""
    ca_file: Path | None = None
    """Authorities that are trusted beside the public ones."""
    connect_seconds: float = 5.0
    first_seconds: float = 60.0
    """To the first piece of a turn: a model may think for long before it says something."""
    idle_seconds: float = 30.0
    """Between two pieces."""
    turn_seconds: float = 180.0
    """For a whole turn."""
    repeats: int = 1
    """How often a turn is asked for again that failed before its first piece; what has begun is never repeated."""
    text_characters: int = 64_000
    call_characters: int = 16_000
    calls: int = 16
    wire_bytes: int = 8 << 20
    """Of one turn, whatever is in it."""
