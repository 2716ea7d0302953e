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
    import numpy as np

    from common.secure.masking import MASKED
    from common.secure.norms import commit_seed, commitment
    from common.wire.messages import OpenRequest, PrepareRequest
    from studies.secure.cost import Case, Federation

    federation = Federation(Case(CLIENTS, int(sys.argv[1]), 0.0))
    desk, card, text = federation.desks[0], federation.roster.cards[0], federation.terms.to_json()
    names, seed = [f"client-{number:06}" for number in range(CLIENTS)], bytes(32)
    bound_by = commitment(np.zeros(1, MASKED), commit_seed(seed), 1)
    boxes = [federation.seal(name, seed, bound_by, card) for name in names]
    desk.prepare(PrepareRequest(text, names, boxes, federation.members, [bound_by] * CLIENTS))
    desk.open(OpenRequest(text, names))
    [kilobytes] = re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    print(int(kilobytes) * 1024 / 1e6)


if __name__ == "__main__":
    main()
