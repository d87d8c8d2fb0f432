"""`reseller cdr import`: a file of call records, by every way it may be written and interrupted."""

import gzip
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.cdr.between import HAND_ON_SILENTLY, LOSE, NO_MORE, PASS, WAIT, Between, between
from tests.cdr.records import iccid
from tests.cli.reseller import Done, printed, run_reseller
from tests.cli.terminal import at_terminal
from tests.harness.processes import COMMAND, Child, Running, environment, running

HEADER = "id,iccid,occurred_at,bytes_up,bytes_down,network,country"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Running]:
    with running(place / "data", {"SERVICE_BURST_LIMIT": "false"}) as server:
        yield server


def rows(prefix: str, count: int, *, sim: int = 1) -> list[str]:
    return [f"{prefix}-{number},{iccid(sim)},2025-03-01T00:00:00Z,1,9,A,NO" for number in range(count)]


def written(place: Path, name: str, lines: Iterable[str], *, end: str = "\n") -> Path:
    path = place / name
    content = end.join(lines).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def run(place: Path, *words: str | Path, **settings: str) -> Done:
    return run_reseller("cdr", "import", *words, cwd=place, XDG_CONFIG_HOME=str(place / "config"), SERVICE_BURST_LIMIT="false", **settings)


def counts(done: Done) -> dict[str, int]:
    return json.loads(done.stdout)


def told(done: Done) -> list[str]:
    steady = re.sub(r"[0-9,]+ rows/s", "N rows/s", done.stderr)
    return re.sub(r"ahead of \S+", "ahead of NOW", steady).splitlines()


def used(place: Path, sim: int) -> dict[str, Any]:
    whole = json.loads(printed("call", "aggregate_cdr", "--year", "2025", "--month", "3", "--iccid", iccid(sim), cwd=place))
    return whole["data"][0]


def through(way: Between, server: Running) -> tuple[str, ...]:
    assert server.api_key is not None
    return "--url", way.url, "--key", server.api_key


def kept(place: Path) -> list[Path]:
    return [path for folder in (place / "data", place / "config" / "reseller") for path in (folder / "imports").glob("*")]


@pytest.mark.long
def test_a_csv_file_may_be_written_in_many_ways(place: Path, server: Running) -> None:
    lines = [
        '\ufeffCountry,"bytes_down", iccid ,ID,occurred_at,bytes_up,network',
        f'no,9,{iccid(1)},"w-1",2025-03-01T00:00:00Z,1,"Telenor, Norge"',
        "",
        f",18, {iccid(1)} ,w-2,1740787200,2,",
        "   ",
        f'"SE","27","{iccid(1)}","w""3","2025-03-01T01:00:00+01:00","3","Say ""A"""',
        f"NO,9,{iccid(1)},w-1,2025-03-01T00:00:00Z,1,again",
    ]
    done = run(place, written(place, "ways.csv", lines, end="\r\n"))
    assert (done.returncode, done.stdout, told(done)) == snapshot(
        (0, "lines 4, stored 3, skipped 1, bad 0\n", ["100 %, N rows/s, stored 3, skipped 1"])
    )
    assert used(place, 1) == {"iccid": iccid(1), "bytes_up": 6, "bytes_down": 54, "bytes_total": 60, "events": 3}
    assert kept(place) == []


@pytest.mark.cases
@pytest.mark.parametrize(
    ("name", "words"), [("a.jsonl", ()), ("a.NDJSON.gz", ()), ("a.txt", ("--format", "jsonl")), ("a", ("--format", "jsonl"))]
)
def test_json_lines_are_taken_packed_or_not(place: Path, server: Running, name: str, words: tuple[str, ...]) -> None:
    record = {"iccid": iccid(2), "occurred_at": "2025-03-01T00:00:00Z", "bytes_up": 1, "bytes_down": 9.0}
    lines = ["\ufeff" + json.dumps({"id": f"{name}-1", **record}), "", json.dumps({"id": f"{name}-2", "network": None, **record})]
    assert counts(run(place, written(place, name, lines), *words, "--json")) == {"lines": 2, "stored": 2, "skipped": 0, "bad": 0}


@pytest.mark.long
def test_a_packed_csv_file_of_several_batches_is_stored_once(place: Path, server: Running) -> None:
    path = written(place, "packed.csv.gz", [HEADER, *rows("p", 2500, sim=3), *rows("p", 10, sim=3)])
    assert counts(run(place, path, "--json")) == {"lines": 2510, "stored": 2500, "skipped": 10, "bad": 0}
    assert counts(run(place, path, "--json")) == {"lines": 2510, "stored": 0, "skipped": 2510, "bad": 0}
    assert used(place, 3)["bytes_total"] == 25_000


def test_bad_lines_are_told_and_the_others_are_stored(place: Path, server: Running) -> None:
    good = rows("b", 3, sim=4)
    bad = [
        f"b-x,{iccid(4)},2025-03-01T00:00:00Z,one,9,A,NO",
        "b-x,123,2025-03-01T00:00:00Z,1,9,A,NO",
        f"b-x,{iccid(4)},2099-01-01T00:00:00Z,1,9,A,NO",
        f"b-x,{iccid(4)},yesterday,1,9,A,NO",
        f"b-x,{iccid(4)},2025-03-01T00:00:00Z,1,9,A",
        f'b-x,{iccid(4)},2025-03-01T00:00:00Z,1,9,"A,NO',
        f"b-x,{iccid(4)},2025-03-01T00:00:00Z,-1,9,A,Norway",
        f",{iccid(4)},2025-03-01T00:00:00Z,1,,A,NO",
        "x" * 70_000,
    ]
    path = written(place, "bad.csv", [HEADER, good[0], *bad, good[1], good[2]])
    path.write_bytes(path.read_bytes().replace(b"Norway", b"\xff\xfe"))
    done = run(place, path, "--errors", place / "bad.txt")
    assert done.returncode == 1
    assert done.stdout == "lines 12, stored 3, skipped 0, bad 9\n"
    assert told(done) == snapshot(
        [
            'line 3: bytes_up: got "one"; must be an integer',
            'line 4: iccid: got "123"; must match ^89[0-9]{16,20}$',
            "line 5: occurred_at: 2099-01-01T00:00:00Z is more than 5 minutes ahead of NOW",
            'line 6: occurred_at: got "yesterday"; it is neither RFC 3339 with an offset, such as 2026-11-20T09:00:00Z, '
            "nor whole Unix seconds",
            "line 7: has 6 columns, and the header has 7",
            "line 8: is not CSV: a quote is not closed on its line, or stands inside a cell",
            "line 9: is not UTF-8",
            'line 10: id: got ""; must match ^[!-~]{1,128}$ (and 1 more)',
            "line 11: longer than 64 KiB, which no record is",
            "100 %, N rows/s, stored 3, skipped 0, bad 9",
            "9 of the lines could not be used; mend them and import the file once more",
        ]
    )
    assert (place / "bad.txt").read_text().splitlines() == [line for line in done.stderr.splitlines() if line.startswith("line ")]
    assert used(place, 4)["events"] == 3
    assert kept(place) == []


def test_bad_json_lines_are_told_by_what_is_wrong_with_them(place: Path, server: Running) -> None:
    record = {"id": "j-1", "iccid": iccid(), "occurred_at": 1_740_787_200, "bytes_up": 1, "bytes_down": 9}
    lines = [
        '{"id": "j-1"',
        "[1]",
        '{"id": "j-1", "id": "j-2"}',
        json.dumps({**record, "imsi": "242017100000000"}),
        json.dumps({**record, "iccid": "someone@example.com"}),
    ]
    done = run(place, written(place, "bad.jsonl", lines), "--json")
    assert done.returncode == 1
    assert done.stdout == '{"lines":5,"stored":0,"skipped":0,"bad":5}\n'
    assert told(done) == snapshot(
        [
            "line 1: it is not JSON: Expecting ',' delimiter at column 13",
            "line 2: is not a JSON object",
            "line 3: id: the name stands twice in one object",
            "line 4: imsi: unknown field",
            'line 5: iccid: got "***@***"; must match ^89[0-9]{16,20}$',
            "100 %, N rows/s, stored 0, skipped 0, bad 5",
            "5 of the lines could not be used; mend them and import the file once more",
        ]
    )


def test_twenty_bad_lines_are_shown_and_all_are_counted_and_written(place: Path, server: Running) -> None:
    path = written(place, "many.csv", [HEADER, *["x"] * 1500])
    done = run(place, path, "--errors", place / "many.txt", "--json")
    assert (done.returncode, counts(done)["bad"]) == (1, 1500)
    shown = [line for line in done.stderr.splitlines() if line.startswith("line ")]
    assert (len(shown), shown[0]) == (20, "line 2: has 1 columns, and the header has 7")
    assert "more lines are bad; all of them are in the file" in done.stderr
    assert len((place / "many.txt").read_text().splitlines()) == 1500


def test_a_record_that_the_server_refuses_does_not_keep_the_others_out(place: Path, server: Running) -> None:
    most = f"{iccid(5)},2025-03-01T00:00:00Z,{10**15},{10**15},A,NO"
    path = written(place, "full.csv", [HEADER, *(f"f-{number},{most}" for number in range(5)), f"f-5,{iccid(5)},1740787200,1,1,,"])
    done = run(place, path, "--json")
    assert (done.returncode, counts(done)) == (1, {"lines": 6, "stored": 5, "skipped": 0, "bad": 1})
    assert done.stderr.splitlines()[0] == snapshot(
        "line 2: with this batch its SIM's records of 2025-03 would add up to more than 9007199254740991 bytes "
        "(2^53-1), up and down together"
    )
    assert used(place, 5)["events"] == 5


FILES: dict[str, bytes] = {
    "nothing.csv": b"",
    "lacks.csv": b"id,iccid,occurred_at,bytes_up,imsi,imsi\n",
    "twice.csv": b"id,id,iccid,occurred_at,bytes_up,bytes_down\n",
    "utf16.csv": "id,iccid\n".encode("utf-16"),
    "what.txt": b"",
    "broken.csv.gz": gzip.compress(b"id,iccid,occurred_at,bytes_up,bytes_down\n" * 50)[:40],
    "plain.csv.gz": b"id,iccid",
    "ok.csv --errors /nowhere/errors.txt": b"id,iccid,occurred_at,bytes_up,bytes_down\n",
    "ok.csv --org org_nonesuch": f"{HEADER}\na,b,c,1,2,,\n{rows('ok', 1)[0]}\n".encode(),
}


@pytest.mark.long
def test_what_cannot_be_imported_is_told(place: Path, server: Running) -> None:
    found: dict[str, tuple[int, list[str]]] = {}
    for words, content in FILES.items():
        (place / words.split()[0]).write_bytes(content)
        done = run(place, *words.split())
        assert done.stdout == ""
        found[words] = done.returncode, told(done)
    assert found == snapshot(
        {
            "nothing.csv": (
                2,
                [
                    "nothing.csv: has no header; its first line names the columns: id, iccid, occurred_at, bytes_up, bytes_down, "
                    "network, country"
                ],
            ),
            "lacks.csv": (
                2,
                [
                    "lacks.csv: the header lacks bytes_down; it has unknown imsi. Columns are id, iccid, occurred_at, "
                    "bytes_up, bytes_down, network, country, in any order; the last two may miss"
                ],
            ),
            "twice.csv": (
                2,
                [
                    "twice.csv: the header repeats id. Columns are id, iccid, occurred_at, bytes_up, bytes_down, network, country, "
                    "in any order; the last two may miss"
                ],
            ),
            "utf16.csv": (2, ["utf16.csv: the header cannot be read: is not UTF-8; the file is CSV in UTF-8 with commas"]),
            "what.txt": (2, ["--format: what.txt does not say what it is; give --format csv or --format jsonl"]),
            "broken.csv.gz": (1, ["broken.csv.gz: is not whole gzip; get the file again, what is stored of it counts once"]),
            "plain.csv.gz": (1, ["plain.csv.gz: is not whole gzip; get the file again, what is stored of it counts once"]),
            "ok.csv --errors /nowhere/errors.txt": (2, ["--errors: /nowhere/errors.txt cannot be written (No such file or directory)"]),
            "ok.csv --org org_nonesuch": (
                2,
                [
                    "--org: org_nonesuch is unknown or has no members",
                    "  stopped after line 0; run the same command again and it goes on there, nothing counts twice",
                ],
            ),
        }
    )


def test_a_directory_is_told_to_be_one(place: Path, server: Running) -> None:
    (place / "november").mkdir()
    done = run(place, "november")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "november: is a directory; name a file of call records in it\n")


def test_a_file_that_is_not_there_is_told(place: Path, server: Running) -> None:
    done = run(place, "none.csv")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "none.csv: no such file\n")


@pytest.mark.long
def test_killed_in_the_middle_it_goes_on_where_it_was_and_counts_nothing_twice(place: Path, server: Running) -> None:
    path = written(place, "killed.csv", [HEADER, *rows("k", 2000, sim=6), "bad", *rows("l", 1499, sim=6)])
    config = {"XDG_CONFIG_HOME": str(place / "config")}
    with between(server.base_url, PASS, PASS, HAND_ON_SILENTLY) as way:
        words = ("cdr", "import", str(path), *through(way, server), "--errors", str(place / "killed.txt"))
        with Child([*COMMAND, *words], cwd=place, env=environment(config), stderr=subprocess.PIPE) as process:
            assert way.hanging.wait(60)  # the third batch is stored, and nobody will say so
            process.kill()
        assert len(kept(place)) == 1
        stranger = run(place, path, "--url", way.url, "--key", "ak_" + "0" * 46)
        assert stranger.returncode == 1
        assert "goes on after line" not in stranger.stderr, "what one organisation has sent another has not"
        done = run_reseller(*words, "--json", cwd=place, **config)
        assert "goes on after line 2,001; --again" in done.stderr
        assert counts(done) == {"lines": 3500, "stored": 2500, "skipped": 999, "bad": 1}
        assert way.asked == 3 + 1 + 2
    assert used(place, 6)["events"] == 3499
    assert (place / "killed.txt").read_text() == "line 2002: has 1 columns, and the header has 7\n"
    assert kept(place) == []


@pytest.mark.long
def test_again_begins_with_the_first_line(place: Path, server: Running) -> None:
    path = written(place, "again.csv", [HEADER, *rows("again", 1500, sim=7)])
    with between(server.base_url, PASS, NO_MORE) as way:
        stopped = run(place, path, *through(way, server))
        assert stopped.returncode == 1
        assert stopped.stdout == ""
        assert told(stopped) == snapshot(
            [
                "write access has ended  [upgrade_required]",
                "  Upgrade: None",
                "  request id req_2",
                "  stopped after line 1,001; run the same command again and it goes on there, nothing counts twice",
            ]
        )
        anew = run(place, path, *through(way, server), "--again", "--json")
    assert counts(anew) == {"lines": 1500, "stored": 500, "skipped": 1000, "bad": 0}
    assert used(place, 7)["events"] == 1500


@pytest.mark.long
def test_a_file_that_has_changed_is_another_one(place: Path, server: Running) -> None:
    path = written(place, "grown.csv", [HEADER, *rows("g", 1500, sim=8)])
    with between(server.base_url, PASS, NO_MORE) as way:
        stopped = run(place, path, *through(way, server))
        assert (stopped.returncode, told(stopped)[-1]) == snapshot(
            (1, "  stopped after line 1,001; run the same command again and it goes on there, nothing counts twice")
        )
        written(place, "grown.csv", [HEADER, *rows("h", 1, sim=8), *rows("g", 1500, sim=8)])
        assert counts(run(place, path, *through(way, server), "--json")) == {"lines": 1501, "stored": 501, "skipped": 1000, "bad": 0}


@pytest.mark.long
def test_lost_answers_and_requests_to_wait_change_no_count(place: Path, server: Running) -> None:
    path = written(place, "lost.csv", [HEADER, *rows("o", 1001, sim=9)])
    with between(server.base_url, LOSE, WAIT, PASS) as way:
        done = run(place, path, *through(way, server), "--json")
        assert (done.returncode, way.asked) == (0, 4)
    assert counts(done) == {"lines": 1001, "stored": 1, "skipped": 1000, "bad": 0}, "the first batch was stored unheard"
    assert used(place, 9)["events"] == 1001


def test_a_refused_credential_ends_the_import(place: Path, server: Running) -> None:
    path = written(place, "refused.csv", [HEADER, *rows("r", 1, sim=10)])
    done = run(place, path, "--url", server.base_url, "--key", "ak_wrong")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[unauthorized]" in done.stderr and "stopped after line 0; run the same command again" in done.stderr


@pytest.mark.long
def test_a_person_sees_a_bar_with_the_counts(place: Path, server: Running) -> None:
    path = written(place, "bar.csv", [HEADER, "bad [red]line[/red]", *rows("s", 1200, sim=11)])
    code, shown = at_terminal("cdr", "import", str(path), cwd=place, settings={"SERVICE_BURST_LIMIT": "false"})
    assert code == 1
    assert "line 2: has 1 columns" in shown
    assert "100%" in shown and "rows/s, stored 1,200, skipped 0, bad 1" in shown
    assert "lines 1,201, stored 1,200, skipped 0, bad 1" in shown
