"""House rules: the list of private imports of Flower holds, and the measuring functions find what they should."""

import ast

import pytest

from tools.check import findings
from tools.check_code import flower_imports, function_lengths, private_flower_modules
from tools.check_texts import broken_rules


def test_no_file_imports_a_private_module_of_flower_that_is_not_listed() -> None:
    assert findings(["flower_imports"]) == []


def test_a_new_private_import_is_found() -> None:
    found = list(flower_imports({}))
    assert found
    assert all("private to Flower" in finding for finding in found)


def test_public_modules_of_flower_are_not_private() -> None:
    tree = ast.parse("from flwr.app import Message\nimport flwr.serverapp.strategy\nfrom flwr.common.serde import x")
    assert private_flower_modules(tree) == {"flwr.common.serde"}


def test_the_length_of_a_function_leaves_out_docstring_and_signature() -> None:
    [(node, lines)] = function_lengths(ast.parse('def f(\n    a,\n):\n    """Text."""\n    b = a\n    return b\n'))
    assert (node.name, lines) == ("f", 2)


@pytest.mark.parametrize(
    ("text", "count"), [("no file; name one", 0), ("No file; name one", 1), ("no file.", 1), ("Told you!", 3)]
)
def test_messages_have_a_form(text: str, count: int) -> None:
    assert len([*broken_rules(text)]) == count


def test_an_unknown_check_is_a_finding() -> None:
    assert "choose from" in findings(["nothing"])[0]
