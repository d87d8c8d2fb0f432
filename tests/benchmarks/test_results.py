"""The committed page says what the committed samples say."""

from benchmarks.results import RESULTS, load, render


def test_the_page_of_results_is_what_its_samples_give() -> None:
    assert RESULTS.read_text() == render(load())
