"""docs/conformance.md: every rule, every operation and every abuse case with the tests that hold it."""

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation
from tests.harness.processes import ROOT
from tests.spec.collected import Collected
from tests.spec.keeper import asked
from tests.spec.ledgers import Rule, carried, cases, rules, tsv_rows
from tests.spec.proofs import ANY, COLUMNS, FILES, PROOFS, RULES, Proof

CONFORMANCE_PAGE = ROOT / "docs" / "conformance.md"
COMMAND = "python -m tests.docs.tables"
TITLES = {
    "2": "Resources and their fields",
    "3": "States and transitions",
    "4": "Endpoints",
    "5": "Authentication",
    "6": "Events",
    "7": "Errors",
    "8": "Limits",
    "9": "Versioning",
}


def conformance_page(collected: Collected) -> str:
    return "\n".join([introduction(), rules_part(), operations_part(collected), cases_part()])


def rows(head: str, lines: list[str]) -> str:
    return "\n".join([f"| {head} |", "|" + "---|" * (head.count(" | ") + 1), *lines])


def names(tests: tuple[str, ...]) -> str:
    """Tests as one may hand them to the test command, below the folder of tests."""
    return "<br>".join(f"`{test}`" for test in tests)


def specified() -> list[Rule]:
    """The rules of the sections that say what the service does."""
    return [rule for rule in rules() if rule.section.partition(".")[0] in TITLES]


def rules_part() -> str:
    """Part 1."""
    tests, parts = carried(), ["## 1. Rules\n"]
    for number, title in TITLES.items():
        own = [rule for rule in specified() if rule.section.partition(".")[0] == number]
        parts.append(f"### {number}. {title}\n")
        parts.append(
            rows("Rule | What it says | Tests", [f"| {rule.id} | {rule.words} | {names(tests[rule.id])} |" for rule in own]) + "\n"
        )
    return "\n".join(parts)


def operations_part(collected: Collected) -> str:
    """Part 2."""
    of_rows = {row[0] for row in tsv_rows("spec/operations.tsv")}
    answered = {line.split("`")[1] for line in (ROOT / "docs/outcomes.md").read_text().splitlines() if line.startswith("| `")}
    lines: list[str] = []
    for operation in CATALOGUE.operations.values():
        assert operation.id in answered, operation.id
        cells = [cell(operation, column, collected) for column in COLUMNS]
        told = cells[0] if operation.id in of_rows else f"ours alone: {cells[0]}"
        lines.append(f"| `{operation.id}` | {' | '.join([told, *cells[1:]])} |")
    return f"## 2. Operations\n\n{legend()}\n\n{rows(' | '.join(['Operation', *COLUMNS]), lines)}\n"


def cell(operation: AnyOperation, column: str, collected: Collected) -> str:
    """What proves one thing of one operation, or why there is nothing to prove."""
    letters = [rule.id for rule in specified() if operation.id in rule.operations] if column == RULES else []
    letters += [proof.letter for proof in PROOFS if proof.column == column and proves(proof, operation.id, collected)]
    reason = COLUMNS[column](operation)
    if not letters and reason is None:
        raise LookupError(f"{operation.id}: nothing proves {column}, and nothing says why it need not be proven")
    return " ".join(letters) or f"n/a: {reason}"


def proves(proof: Proof, operation: str, collected: Collected) -> bool:
    """Whether pytest collects the test, for this operation."""
    if proof.operation == ANY:
        return operation in collected.get(proof.test, ())
    return proof.operation == operation and proof.test in collected


def legend() -> str:
    lines = [f"| {proof.letter} | {proof.column} | {proof.says} | `{proof.test}` |" for proof in PROOFS]
    return rows("Letter | Column | What is proven | Test", lines)


def cases_part() -> str:
    """Part 3."""
    lines = [f"| {case.number} | {case.attack} | {names(case.tests)} |" for case in cases()]
    return f"## 3. Abuse cases\n\n{rows('Case | Attack | Tests', lines)}\n"


def introduction() -> str:
    """How to read it, and how it is made."""
    total, of_rows = len(CATALOGUE.operations), len(tsv_rows("spec/operations.tsv"))
    return f"""# Conformance

What the service promises, and the tests that hold it to that. Every row has tests, or says why there is nothing to test.

1. **Rules**: the {len(specified())} rules of the specification's sections 2 to 9, in its order, each with the tests that prove it.
2. **Operations**: the {of_rows} operations of the specification and {total - of_rows} that are ours alone, with what proves each at every
   door. [Outcomes](outcomes.md) has what every one answers in nine situations, and [identities](identities.md) to whom.
3. **Abuse cases**: the {len(cases())} attacks of the threat model, each with the tests in which it fails.

A test is written `file::function`, below the folder `tests`; any of them runs by itself:

```sh
python3 ./run test tests/connectivity/test_intents.py::test_without_a_plan_the_intent_waits_for_one
```

Nothing here is written by hand. `{COMMAND}` makes the page from three things, and a test fails when it is not up to date:

- `tests/spec/rules.tsv` has the rules, and a test that proves one carries `@pytest.mark.rule` with its number. A rule without a
  test fails the build, and so does a mark without a rule.
- The catalogue has the operations, and `tests/spec/proofs.tsv` the tests that many of them share. A letter stands in a row only
  where pytest really collects that test for that operation: what is renamed, deleted or no longer asked of an operation
  disappears from its row. **n/a** says why a question does not arise, as the operation's declaration has it.
- `tests/abuse/cases.tsv` has the abuse cases.
"""


def write() -> None:
    CONFORMANCE_PAGE.write_text(conformance_page(asked(FILES)))
