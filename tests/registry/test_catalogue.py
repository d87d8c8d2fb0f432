"""A toolset is a package: its files are found, and each declares something."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from registry.catalogue import Catalogue, Toolset

DECLARATION = '''
"""Lamps."""

from operations.deps import Ctx
from registry.operation import Nothing
from registry.operation import operation


@operation("GET", "/v1/lamps")
async def list_lamps(ctx: Ctx, params: Nothing) -> dict[str, str]:
    """List the lamps."""
    return {}
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A toolset's package with one declaration."""
    (tmp_path / "lamp_toolset").mkdir()
    (tmp_path / "lamp_toolset" / "__init__.py").touch()
    (tmp_path / "lamp_toolset" / "lamps.py").write_text(DECLARATION)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lamp_toolset")
    for name in [name for name in sys.modules if name.partition(".")[0] == "lamp_toolset"]:
        del sys.modules[name]


def test_a_file_of_a_toolset_is_found_by_itself(package: ModuleType) -> None:
    assert list(Catalogue([Toolset("lamps", "Light.", (package,))]).operations) == ["list_lamps"]


def test_a_file_of_a_toolset_without_a_declaration_fails_the_start_and_is_named(package: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "lamp_toolset" / "shades.py").write_text("COLOUR = 'green'\n")
    (tmp_path / "lamp_toolset" / "glass").mkdir()
    (tmp_path / "lamp_toolset" / "glass" / "__init__.py").touch()
    (tmp_path / "lamp_toolset" / "glass" / "kinds.py").write_text("KINDS = 3\n")  # a folder in the package may hold what it likes
    with pytest.raises(TypeError, match=r"lamp_toolset/shades\.py declares no operation: the toolset lamps has"):
        Catalogue([Toolset("lamps", "Light.", (package,))])
