"""The list of releases agrees with the changelog and with the schemas that there are."""

import re
from pathlib import Path

from storage.engine.revision import HEAD, REVISIONS

ROOT = Path(__file__).parent.parent.parent
ROW = re.compile(r"^\| (\S+) \| (\S*) ?\| (\d{4}) \| ?(.*?) ?\|$", re.MULTILINE)


def test_each_release_of_the_changelog_has_its_schema_and_its_way_of_upgrading() -> None:
    rows = ROW.findall((ROOT / "docs" / "releases.md").read_text())
    releases = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert [row[0] for row in rows] == releases[::-1]
    released = [(release, commit) for release, commit, _, _ in rows if release != "Unreleased"]
    assert all(re.fullmatch(rf"[0-9a-f]{{7,40}}|v{re.escape(release)}", commit) for release, commit in released)
    schemas = [schema for _, _, schema, _ in rows]
    assert schemas == sorted(schemas) and set(schemas) <= set(REVISIONS) and schemas[-1] == HEAD
    assert all(re.match(r"(side by side|stop first)", way) for _, _, _, way in rows[1:])
