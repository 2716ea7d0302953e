"""Write lock files with the SHA-256 of every file of each release: `python tools/locks.py RUNTIME DEV`, made by `make lock`.

RUNTIME and DEV are lists of `pip freeze`. The hashes come from the package index, for all platforms. In
`requirements-cpu.lock` torch has its CPU wheels, from an index of their own or, where that is out of reach, PIP_FIND_LINKS.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from urllib.request import Request, urlopen

INDEX = "https://pypi.org/simple"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""Index of the wheels whose version ends in `+cpu`."""

FORM = "application/vnd.pypi.simple.v1+json"
SECONDS = 60.0

RUNTIME, CPU, DEV = "requirements.lock", "requirements-cpu.lock", "requirements-dev.lock"
HEADERS = {
    RUNTIME: "# Exact versions of everything fedloom needs at run time, with hashes; made by `make lock`.",
    CPU: f"# The same with CPU wheels of torch, which pip finds with --extra-index-url {CPU_INDEX}; made by `make lock`.",
    DEV: "# What development and tests need besides a runtime lock, which is installed before; made by `make lock`.",
}


def released(files: Iterable[Mapping[str, Any]], name: str, version: str) -> list[str]:
    """Return the sorted hashes of the files of a release, as a simple index lists all files of a package."""
    stem = "[-_.]+".join(map(re.escape, re.split(r"[-_.]+", name)))
    form = re.compile(rf"{stem}-{re.escape(version)}(-.*\.whl|\.tar\.gz|\.zip|\.tar\.bz2)", re.IGNORECASE)
    chosen = [file for file in files if form.fullmatch(file["filename"]) and not file.get("yanked")]
    return sorted({file["hashes"]["sha256"] for file in chosen})


def from_page(page: str) -> list[dict[str, Any]]:
    """Return the files that a page of an index links, with their hashes."""
    links = re.findall(r'href="[^"#]*/([^"/#]+)#sha256=([0-9a-f]{64})"', page)
    return [{"filename": unquote(name), "hashes": {"sha256": digest}} for name, digest in links]


def from_folder(folder: Path) -> list[dict[str, Any]]:
    """Return the wheels in a folder, with their hashes."""
    return [
        {"filename": path.name, "hashes": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}
        for path in sorted(folder.glob("*.whl"))
    ]


def locked(pins: Mapping[str, str], hashes: Mapping[str, list[str]]) -> str:
    """Return the lines of a lock: a version and its hashes for each package.

    Raises:
        SystemExit: A release has no file on the index.
    """
    if missing := [name for name in pins if not hashes[name]]:
        raise SystemExit(f"no file on the index: {', '.join(f'{name}=={pins[name]}' for name in missing)}")
    return "".join(
        " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in hashes[name])]) + "\n"
        for name, version in sorted(pins.items(), key=lambda pin: pin[0].lower())
    )


def read_pins(path: Path) -> dict[str, str]:
    """Return package -> version of a list of `pip freeze`, without local versions such as `+cpu`."""
    lines = [line.strip().partition("==") for line in path.read_text("utf-8").splitlines() if "==" in line]
    return {name: version.partition("+")[0] for name, _, version in lines}


def _ask(url: str, form: str) -> bytes:
    with urlopen(Request(url, headers={"Accept": form}), timeout=SECONDS) as answer:
        content: bytes = answer.read()
    return content


def _cpu_wheels(version: str) -> list[str]:
    try:
        found = from_page(_ask(f"{CPU_INDEX}/torch/", "text/html").decode())
    except OSError as error:
        print(f"{CPU_INDEX}: {error}; its wheels are taken from PIP_FIND_LINKS", file=sys.stderr)
        found = [file for folder in os.environ.get("PIP_FIND_LINKS", "").split() for file in from_folder(Path(folder))]
    return released(found, "torch", f"{version}+cpu")


def main(runtime: str, dev: str) -> None:
    """Write the three lock files."""
    pins, further = read_pins(Path(runtime)), read_pins(Path(dev))
    further = {name: version for name, version in further.items() if name not in pins}
    files = {name: json.loads(_ask(f"{INDEX}/{name}/", FORM))["files"] for name in {**pins, **further}}
    hashes = {name: released(files[name], name, version) for name, version in {**pins, **further}.items()}
    cpu = f"{pins['torch']}+cpu"
    texts = {
        RUNTIME: locked(pins, hashes),
        CPU: locked({**pins, "torch": cpu}, {**hashes, "torch": _cpu_wheels(pins["torch"])}),
        DEV: locked(further, hashes),
    }
    for name, text in texts.items():
        Path(name).write_text(f"{HEADERS[name]}\n{text}", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
