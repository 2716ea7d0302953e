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


STEPS = {
    "UpdateChain((select,), Plaintext(), (encode,))": "",
    "UpdateChain((encode,), Plaintext())": 'argument "select"|Argument 1 to "UpdateChain"',
    "UpdateChain((select, encode), Plaintext())": 'Argument 1 to "UpdateChain"',
    "UpdateChain((), encode)": 'Argument 2 to "UpdateChain"',
    "UpdateChain((), Plaintext(), (select,))": 'Argument 3 to "UpdateChain"',
    "encode(work())": 'Argument 1 to "encode"',
    "UpdateChain((), select)": 'Argument 2 to "UpdateChain"',
}


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return mypy's messages on each line; one call checks all lines."""
    file = tmp_path_factory.mktemp("types") / "chain.py"
    file.write_text(CHAIN + "\n".join(STEPS) + "\n")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(file)]  # shares the cache of `make check`
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    first = CHAIN.count("\n") + 1
    return {
        code: "\n".join(line for line in done.stdout.splitlines() if f"{file.name}:{number}: " in line)
        for number, code in enumerate(STEPS, first)
    }


@pytest.mark.parametrize("code", STEPS)
def test_a_step_in_the_wrong_place_does_not_type_check(code: str, faults: dict[str, str]) -> None:
    assert bool(faults[code]) == bool(STEPS[code]), faults
    assert not STEPS[code] or any(part in faults[code] for part in STEPS[code].split("|")), faults
