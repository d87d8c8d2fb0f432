"""What makes a figure of `python -m tools.house` smaller without making the code better is counted all the same."""

from pathlib import Path

from tools.house import House, figures, read_house

DOUBLES = "public names that several files of a layer define"


def checkout(root: Path, **files: str) -> House:
    """A checkout with one layer, `storage`. Two underscores in a name stand for a slash."""
    for name, text in files.items():
        place = name if "/" in name else name.replace("__", "/")
        path = root / "storage" / f"{place}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_house(root)


def long_function(name: str, body: str = "x = 1") -> str:
    """A function of 70 lines."""
    return f"def {name}():\n" + f"    {body}\n" * 69


def test_a_name_that_two_files_of_a_layer_define_is_counted_once(tmp_path: Path) -> None:
    house = checkout(tmp_path, orders="def shown(): ...", invoices="def shown(): ...", lines="def line_page(): ...")
    assert figures(house)[DOUBLES] == "1"


def test_the_same_name_in_two_layers_is_no_double(tmp_path: Path) -> None:
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "orders.py").write_text("def shown(): ...")
    assert figures(checkout(tmp_path, orders="def shown(): ..."))[DOUBLES] == "0"


def test_an_underscore_on_a_name_that_others_import_leaves_it_public(tmp_path: Path) -> None:
    user = "from storage.orders import _shown\nfrom storage.invoices import _shown as other"
    house = checkout(tmp_path, orders="def _shown(): ...", invoices="def _shown(): ...", lines=user)
    assert figures(house)[DOUBLES] == "1"


def test_the_methods_of_a_class_without_state_count_as_functions(tmp_path: Path) -> None:
    stateless = "class {}:\n    @staticmethod\n    def shown(): ...\n    def counted(self): return 1\n"
    house = checkout(tmp_path, orders=stateless.format("Orders"), invoices=stateless.format("Invoices"))
    assert set(house.doubles(private=False)["storage"]) == {"shown", "counted"}


def test_the_methods_of_a_class_with_state_are_its_own(tmp_path: Path) -> None:
    stateful = "class {}:\n    def __init__(self): self.rows = 1\n    def shown(self): return self.rows\n"
    house = checkout(tmp_path, orders=stateful.format("Orders"), invoices=stateful.format("Invoices"))
    assert figures(house)[DOUBLES] == "0"


def test_a_number_or_a_module_name_glued_on_is_told(tmp_path: Path) -> None:
    house = checkout(tmp_path, orders="def shown(): ...", invoices="def shown2(): ...", lines="def shown_lines(): ...")
    assert figures(house)["names with a number or their module's name glued on"] == "2"


def test_imports_are_counted_wherever_they_hide(tmp_path: Path) -> None:
    hidden = {
        "orders": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from storage.rows import Row\n",
        "invoices": "def total():\n    from storage.rows import Row\n",
        "lines": "import importlib\ndef page():\n    return importlib.import_module('storage.rows')\n",
        "packages/__init__": "from storage.rows import Row\n",
        "rows": "class Row: ...\n",
    }
    house = checkout(tmp_path, **hidden)
    assert {name: len(house.own_imports(module)) for name, module in house.modules.items()} == {
        "storage.orders": 1,
        "storage.invoices": 1,
        "storage.lines": 1,
        "storage.packages": 1,
        "storage.rows": 0,
    }
    assert figures(house)["functions with an import in them"] == "2"


def test_two_nouns_in_one_file_are_told(tmp_path: Path) -> None:
    house = checkout(tmp_path, orders=long_function("order_page") + long_function("invoice_page"))
    assert figures(house)["files of two parts that share nothing"] == "1"


def test_two_parts_that_name_each_other_are_one_noun(tmp_path: Path) -> None:
    house = checkout(tmp_path, orders=long_function("order_page") + long_function("list_orders", "order_page()"))
    assert figures(house)["files of two parts that share nothing"] == "0"


def test_long_lines_foreign_files_and_lines_without_coverage_are_told(tmp_path: Path) -> None:
    house = checkout(tmp_path, orders=f"ROWS = '{'x' * 200}'\nCLOSED = 1  # pragma: no cover\n")
    (tmp_path / "storage" / "orders.json").write_text("{\n}\n")
    measured = figures(house)
    assert measured["lines of more than 140 characters"] == "1"
    assert measured["lines of the product that are not Python"] == "2"
    assert measured["lines that coverage leaves out"] == "1"


def test_two_folders_that_import_each_other_are_a_knot(tmp_path: Path) -> None:
    house = checkout(
        tmp_path,
        money__invoices="from storage.people.members import Member\n",
        money__prices="PRICE = 1\n",
        people__members="class Member: ...\n",
        people__fees="from storage.money.prices import PRICE\n",
    )
    assert house.knots == [["storage.money", "storage.people"]]
