"""What a report of these composites says, and that nothing in it that strangers may read was written by anybody else."""

from typing import Any, get_args

import orjson
import pytest

from operations.intelligence import line_diagnosis, network_coverage
from operations.intelligence.diagnosis.causes import DiagnosisCause
from operations.intelligence.reports.sheet import PublicKind, Sheet
from operations.vocabulary import ProblemCause
from simulators.network.entities import ProviderRow
from tests.intelligence_network.stage import COVERAGE_AUDIT, DiagnosisStage
from tests.intelligence_network.test_coverage import missteer, others
from tests.intelligence_network.test_diagnosis import leave_the_zone, slow_down
from tests.intelligence_network.test_diagnosis_gaps import HOSTILE

PUBLIC = frozenset(get_args(PublicKind))


def public(sheet: Sheet) -> str:
    shown: list[Any] = [sheet["title"], sheet["headline"], sheet["charts"]]
    shown += [figure for figure in sheet["figures"] if figure["kind"] in PUBLIC]
    for table in sheet["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
        kinds = [column["kind"] in PUBLIC for column in table["columns"]]
        shown += [table["title"], table["columns"], table["note"]]
        shown += [[value for value, seen in zip(row, kinds, strict=True) if seen] for row in table["rows"]]
    return orjson.dumps(shown).decode()


async def poison(stage: DiagnosisStage) -> None:
    """Everything that others write says something harmful."""
    for network in [*stage.network.networks.values()]:
        stage.network.networks[network.network_id] = network._replace(name=HOSTILE)
    stage.line.name = stage.line.email = HOSTILE
    stage.line.sim.provider.append(ProviderRow(HOSTILE, stage.network.now + 1, "P1"))
    stage.registered(f"5004 refused {HOSTILE}", stage.network.now)


@pytest.mark.long
async def test_an_audit_is_told_without_names_and_lines(stage: DiagnosisStage) -> None:
    await missteer(stage, [stage.line, *others(stage, 3)])
    await poison(stage)
    sheet = network_coverage.coverage_sheet(await stage.answer(COVERAGE_AUDIT, limit=200))
    told = public(sheet)
    assert "Ignore" not in told and stage.line.iccid not in told
    assert sheet["headline"].startswith("4 lines are steered to networks outside their packages")
    assert sheet["charts"][0]["places"][0] == "NO"
    assert stage.line.iccid in orjson.dumps(sheet).decode()


@pytest.mark.long
async def test_a_fleet_that_is_covered_is_told_in_a_sentence(stage: DiagnosisStage) -> None:
    for line in stage.network.lines_of(8101):
        line.statuses[-1].status = "SUSPENDED" if line.id != stage.line.id else "ACTIVE"
    sheet = network_coverage.coverage_sheet(await stage.answer(COVERAGE_AUDIT))
    assert sheet["headline"] == "All 1 lines that were seen lately are on networks that their packages cover."


async def test_a_diagnosis_is_told_without_names_and_lines(stage: DiagnosisStage) -> None:
    await slow_down(stage)
    await leave_the_zone(stage)
    await poison(stage)
    sheet = line_diagnosis.diagnosis_sheet(await stage.diagnosis())
    told = public(sheet)
    assert "Ignore" not in told and stage.line.iccid not in told
    assert sheet["headline"] == "The package does not cover the network that the line is on."
    assert [row[0] for row in sheet["tables"][0]["rows"]] == ["zone not covering", "throttled", "registrations rejected"]


def test_every_cause_has_its_sentence() -> None:
    assert set(line_diagnosis.CAUSE_HEADLINES) == {*get_args(DiagnosisCause), *get_args(ProblemCause)}
