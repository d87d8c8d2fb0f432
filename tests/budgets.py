"""Seconds that each folder of tests may take, summed over its tests on the two cores of a small machine."""

SECONDS = {
    "benchmarks": 5.0,
    "browser": 20.0,
    "clients": 10.0,
    "contract": 40.0,
    "examples": 20.0,
    "operations": 20.0,
    "registry": 5.0,
    "simulation": 20.0,
    "spec": 10.0,
    "storage": 25.0,
    "transports": 30.0,
}
REST = 10.0  # files that stand directly in tests/
