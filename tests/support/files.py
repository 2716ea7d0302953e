"""Files of lines to try things on, and the folders of the real data sets."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Writer = Callable[..., Path]
"""(lines…, name=…) -> path of a text of these lines, gzipped if its name says so."""


def writer(folder: Path, usual: str) -> Writer:
    """Return what writes lines into a folder and returns the path; `usual` is the name of a file without one."""

    def write(*lines: str, name: str = usual) -> Path:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        content = "".join(line + "\n" for line in lines).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


def folder_of(name: str) -> Path:
    """Return the folder of a real data set; skip the test if the shared data are absent."""
    folder = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data")) / name
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder}; set FEDLOOM_SHARED_DATA to the folder of data sets")
    return folder
