"""Seconds that each folder of tests may take, summed over its tests on the two cores of a small machine."""

SECONDS = {
    "benchmarks": 5.0,
    "abuse": 45.0,
    "browser": 15.0,
    "cli": 45.0,
    "clients": 10.0,
    "conformance": 60.0,
    "connectivity": 20.0,
    "contract": 90.0,
    "deliveries": 15.0,
    "docs": 30.0,
    "examples": 10.0,
    "http": 20.0,
    "identity": 10.0,
    "interop": 15.0,
    "mcp": 30.0,
    "openapi": 25.0,
    "reference": 5.0,
    "registry": 40.0,
    "service": 10.0,
    "settings": 5.0,
    "setup": 10.0,
    "simulation": 20.0,
    "spec": 10.0,
    "storage": 35.0,
}
REST = 10.0  # files that stand directly in tests/
