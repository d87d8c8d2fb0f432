"""A data directory that others may write to: refused in production, told elsewhere."""

import os
from pathlib import Path

import pytest

from tests.settings.test_settings import PRODUCTION
from transports.settings import BadSettings, Settings
from transports.settings_files import load_settings, make_data_directory


def settings(data: Path, *, production: bool) -> Settings:
    return load_settings(PRODUCTION if production else {}, data=data)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o775])
def test_a_directory_that_others_may_write_is_refused_in_production_and_told_elsewhere(tmp_path: Path, mode: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(mode)
    with pytest.raises(BadSettings) as refused:
        make_data_directory(settings(data, production=True), print)
    assert f"{data} can be written by others (mode {mode:o}): chmod go-w {data}" in str(refused.value)
    told: list[str] = []
    make_data_directory(settings(data, production=False), told.append)
    assert told == [
        f"{data} can be written by others (mode {mode:o}): chmod go-w {data}; with SERVICE_ENV=production the service does not start so"
    ]


@pytest.mark.parametrize("name", ["service.db", "service.db-wal", "keyring"])
def test_a_file_that_others_may_write_counts_where_they_may_enter(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.touch()
    file.chmod(0o666)
    told: list[str] = []
    tmp_path.chmod(0o700)
    make_data_directory(settings(tmp_path, production=True), told.append)
    tmp_path.chmod(0o755)
    with pytest.raises(BadSettings, match=f"{name} can be written by others"):
        make_data_directory(settings(tmp_path, production=True), told.append)
    assert told == []


def test_what_belongs_to_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    if tmp_path.stat().st_uid == 0:
        os.chown(tmp_path, 12345, -1)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(BadSettings, match="belongs to another user"):
        make_data_directory(settings(tmp_path, production=True), print)


def test_a_new_directory_is_its_owner_s_alone(tmp_path: Path) -> None:
    told: list[str] = []
    make_data_directory(settings(tmp_path / "new", production=False), told.append)
    assert ((tmp_path / "new").stat().st_mode & 0o777, told) == (0o700, [])


def test_production_does_not_read_its_keys_from_where_others_may_write(tmp_path: Path) -> None:
    given, folder = tmp_path / ".env", tmp_path / "secrets"
    given.write_text("SERVICE_LOG=off\n")
    folder.mkdir(mode=0o755)
    (folder / "SERVICE_INTERNAL_API_KEY").write_text("hidden-word-16-b")
    environment = PRODUCTION | {"SERVICE_SECRETS_DIR": str(folder)}
    assert load_settings(environment, env_file=given).log == "off"
    for path in (given, folder, folder / "SERVICE_INTERNAL_API_KEY"):
        before = path.stat().st_mode
        path.chmod(0o666 | (before & 0o111))
        with pytest.raises(BadSettings, match=f"{path.name} can be written by others") as refused:
            load_settings(environment, env_file=given)
        assert "hidden" not in str(refused.value)
        assert load_settings(environment | {"SERVICE_ENV": "development"}, env_file=given).log == "off"
        path.chmod(before)
