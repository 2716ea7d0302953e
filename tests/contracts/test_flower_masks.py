"""Flower's own masks are used nowhere: seeds of 32 bytes are folded to 32 bits, so that many have the same mask."""

import ast
from pathlib import Path

import pytest
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

ROOT = Path(__file__).parents[2]
LAYERS = ("common", "client", "server", "deploy", "fedloom", "studies", "examples")
FORBIDDEN = "flwr.common.secure_aggregation"


def test_two_seeds_with_two_words_exchanged_have_the_same_mask_in_flower() -> None:
    seed = bytes(range(32))
    exchanged = seed[4:8] + seed[:4] + seed[8:]
    [mask] = pseudo_rand_gen(seed, 1 << 32, [(100,)])
    [other] = pseudo_rand_gen(exchanged, 1 << 32, [(100,)])
    assert seed != exchanged
    assert (mask == other).all()


def imported(path: Path) -> set[str]:
    """Return the modules and names that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_the_product_does_not_import_them(layer: str) -> None:
    paths = sorted((ROOT / layer).rglob("*.py"))
    assert paths
    assert [path for path in paths if any(name.startswith(FORBIDDEN) for name in imported(path))] == []
