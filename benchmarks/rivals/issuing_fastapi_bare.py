"""The same handler without any idempotency: a retry draws a second eSIM, and a lost answer an eSIM that nobody knows of."""

from pathlib import Path

from fastapi import FastAPI

from benchmarks.rivals.issuing_fastapi import application


def make(data: Path) -> FastAPI:
    """The application."""
    return application(data, keyed=False)
