"""Side-by-side measurements; never asserted by the tests."""
