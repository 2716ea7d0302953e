"""Figures of a small tree, and their limits."""

import ast
from pathlib import Path

import pytest

from tools.ratchet import Tree, bare_names, circles, exceeded, measure, outside_importers, tightened

FILES = {
    "server/__init__.py": '"""Layer."""\n',
    "server/one.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from server.two import B\n",
    "server/two.py": "import flwr.proto.run_pb2\nfrom server.one import A\nown = 1\n",
    "server/user.py": "def f(kept):\n    from server.secure import masks\n",
    "server/secure/masks.py": "from server import secure\n",
    "tests/lint/test_a.py": "def test_one(): ...\ndef test_two(): ...\n",
}
ROOMS = {"product": ["server"], "secure": ["server/secure"], "tests": ["tests"], "lint_tests": ["tests/lint/test_a.py"]}
LIMITS = "[most]\nfiles = 5  # a reason\n\n[least]\nmedian = 3\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Tree(tmp_path, ROOMS)


def test_figures_of_a_tree(tree: Tree) -> None:
    figures = measure(tree, ["own", "kept"])
    expected = {"product_lines": 10, "product_files": 4, "median_file": 2.5, "import_circles": 1, "bare_names": 2}
    assert expected.items() <= figures.items()
    assert (figures["secure_importers"], figures["block_importers"]) == (1, 0)
    assert (figures["flower_files"], figures["flower_rooms"]) == (1, 1)
    assert (figures["test_lines"], figures["lint_items"]) == (2, 2)
    assert figures["modules_with_one_importer"] == 4


def test_importers_of_a_room_lie_outside_it(tree: Tree) -> None:
    assert outside_importers(tree, "secure") == ["server.user"]


def test_circles_are_strongly_connected_modules() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [{"a", "b", "c"}]


def test_bare_names_are_bound_names() -> None:
    assert bare_names([ast.parse("own = own\nself._kept = 1\nowner = passed")], ["own", "kept", "passed"]) == 2


def test_a_figure_beyond_its_limit_is_stated() -> None:
    limits = {"most": {"files": 5}, "least": {"median": 3}}
    assert exceeded({"files": 5, "median": 3}, limits) == []
    [more, less, new] = exceeded({"files": 6, "median": 2, "new": 1}, limits)
    assert more == "files: 6 > 5; lower it or raise the limit in tools/ratchet.toml with a reason"
    assert less.startswith("median: 2 < 3; raise the figure or lower the limit")
    assert "no limit" in new


def test_limits_move_to_better_figures_alone() -> None:
    assert tightened(LIMITS, {"files": 4, "median": 2}) == LIMITS.replace("5", "4")
    assert tightened(LIMITS, {"files": 6, "median": 3.5}) == LIMITS.replace("= 3", "= 3.5")
