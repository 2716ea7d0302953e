"""The product uses all of `common.logic`: no public name there serves tests only."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYERS = ("common", "client", "server", "deploy")


def public_names() -> list[tuple[str, str]]:
    """Return module and name of every public function, class, method and constant."""
    found = []
    for path in sorted((ROOT / "common" / "logic").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                found.append((path.stem, node.name))
    return found


def test_every_public_name_has_a_user_in_the_product() -> None:
    sources = [path.read_text("utf-8") for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]
    code = "\n".join(re.sub(r'""".*?"""', "", source, flags=re.DOTALL) for source in sources)
    uses = {name: len(re.findall(rf"\b{name}\b", code)) for _, name in public_names()}
    definitions = {name: len(re.findall(rf"(?:def|class) {name}\b", code)) for name in uses}
    assert [f"{module}.{name}" for module, name in public_names() if uses[name] <= definitions[name]] == []


def test_every_module_is_imported_by_the_product() -> None:
    outside = [p for layer in LAYERS for p in sorted((ROOT / layer).rglob("*.py")) if p.parent.name != "logic"]
    pending = {m for p in outside for m in re.findall(r"common\.logic(?:\.| import )(\w+)", p.read_text("utf-8"))}
    reached: set[str] = set()
    while pending:
        reached |= {name for name in pending if (ROOT / "common" / "logic" / f"{name}.py").exists()}
        texts = [(ROOT / "common" / "logic" / f"{name}.py").read_text("utf-8") for name in reached]
        pending = {m for text in texts for m in re.findall(r"common\.logic\.(\w+)", text)} - reached
        pending = {name for name in pending if (ROOT / "common" / "logic" / f"{name}.py").exists()}
    modules = {path.stem for path in (ROOT / "common" / "logic").glob("*.py")} - {"__init__"}
    assert modules - reached == set()
