"""Memory of a helper's process after one sum.

`python -m studies.secure.memory NUMBERS` prints its peak in MB.
"""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

CLIENTS = 64


def measure_peak(numbers: int) -> float:
    """Return the peak of memory (RSS) in MB of a fresh process that opens one sum."""
    command = [sys.executable, "-m", "studies.secure.memory", str(numbers)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Open a sum with the modules of `fedloom helper`, and print the peak of memory."""
    for module in ("deploy.cli.app", "deploy.federation.helper"):
        import_module(module)
    from studies.secure.cost import Case, Federation

    federation = Federation(Case(CLIENTS, int(sys.argv[1]), 0.0))
    cards = federation.roster.cards
    for number in range(CLIENTS):
        client = f"client-{number:06}"
        federation.boxes[client] = [federation.seal(client, bytes(32), card) for card in cards]
    federation.ask(federation.desks[0], 0)
    [kilobytes] = re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    print(int(kilobytes) * 1024 / 1e6)


if __name__ == "__main__":
    main()
