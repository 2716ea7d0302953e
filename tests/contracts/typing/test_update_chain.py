"""The types of the update chain refuse a step in the wrong place."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

CHAIN = """
from client.privacy.transforms import Plaintext, Released, Update, UpdateChain, Work

def select(work: Work) -> Work:
    return work

def encode(released: Released) -> Released:
    return released

def work() -> Update:
    return Update({})

"""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("UpdateChain((select,), Plaintext(), (encode,))", ""),
        ("UpdateChain((encode,), Plaintext())", 'argument "select"|Argument 1 to "UpdateChain"'),
        ("UpdateChain((select, encode), Plaintext())", 'Argument 1 to "UpdateChain"'),
        ("UpdateChain((), encode)", 'Argument 2 to "UpdateChain"'),
        ("UpdateChain((), Plaintext(), (select,))", 'Argument 3 to "UpdateChain"'),
        ("encode(work())", 'Argument 1 to "encode"'),
        ("UpdateChain((), select)", 'Argument 2 to "UpdateChain"'),
    ],
)
def test_a_step_in_the_wrong_place_does_not_type_check(code: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "chain.py"
    file.write_text(CHAIN + code + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert bool(done.returncode) == bool(error), done.stdout
    assert not error or any(part in done.stdout for part in error.split("|")), done.stdout
