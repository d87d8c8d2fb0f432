"""In which order files of tests begin, and which of them one worker takes together: three workers, two cores."""

# Files that take longest begin first, so that no core waits at the end for the other.
LONGEST = (
    "tests/browser/test_console.py",
    "tests/console/test_every_console_page.py",
    "tests/simulation/test_simulation.py",
    "tests/openapi/test_openapi_generator.py",
    "tests/contract/test_identities.py",
    "tests/contract/test_fuzz.py",
    "tests/contract/test_outcomes.py",
    "tests/kill/test_kills.py",
    "tests/cli/test_simulated_network.py",
    "tests/abuse/test_hostile_input.py",
    "tests/kill/test_restart.py",
    "tests/evidence/test_reconciliation.py",
    "tests/storage/test_migrate.py",
)

# Folders whose tests share one server, one browser or one filled fleet: one worker takes the whole of each.
TOGETHER = ("tests/browser/", "tests/console/", "tests/examples/")
