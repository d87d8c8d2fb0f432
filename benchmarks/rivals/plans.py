"""The test plan that the measured calls ask for."""

EUROPE = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
PLANS: dict[str, dict[str, object]] = {
    "test_eu_1gb": {
        "id": "test_eu_1gb",
        "object": "connectivity.plan",
        "name": "Test Europe 1 GB",
        "data_mb": 1000,
        "unlimited": False,
        "validity_days": 30,
        "countries": EUROPE.split(),
        "livemode": False,
        "price": None,
    }
}
