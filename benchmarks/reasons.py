"""Why an aim is missed: texts beside the samples, written when these were taken, and as old as they are."""

from pathlib import Path

REASONS = Path(__file__).parent / "samples" / "reasons"


def reason(name: str, **figures: float) -> str:
    """The paragraph of that name, with these figures of the samples in it."""
    text = (REASONS / f"{name}.md").read_text()
    return "\n" + (text.format(**figures) if figures else text)
