"""Folders of the real data sets."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def folder_of(name: str) -> Path:
    """Return the folder of a real data set; skip the test if the shared data are absent."""
    folder = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data")) / name
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder}; set FEDLOOM_SHARED_DATA to the folder of data sets")
    return folder
