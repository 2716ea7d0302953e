"""Lock files name the hashes of all files of a release, and of no other."""

from pathlib import Path

import pytest

from tools.locks import from_folder, from_page, locked, read_pins, released


def file(name: str, digest: str, yanked: bool = False) -> dict[str, object]:
    return {"filename": name, "hashes": {"sha256": digest}, "yanked": yanked}


def test_the_files_of_one_release_count() -> None:
    files = [
        file("typing_extensions-4.1-py3-none-any.whl", "b"),
        file("typing-extensions-4.1.tar.gz", "a"),
        file("typing_extensions-4.1.1-py3-none-any.whl", "c"),
        file("typing_extensions-4.1-1-py3-none-any.whl", "d", yanked=True),
        file("other-4.1.tar.gz", "e"),
    ]
    assert released(files, "typing_extensions", "4.1") == ["a", "b"]


def test_wheels_of_an_index_and_of_a_folder_have_hashes(tmp_path: Path) -> None:
    digest = "0" * 64
    page = f'<a href="/whl/cpu/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl#sha256={digest}">torch</a>'
    assert released(from_page(page), "torch", "2.13.0+cpu") == [digest]
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").write_bytes(b"")
    [found] = released(from_folder(tmp_path), "torch", "2.13.0+cpu")
    assert found.startswith("e3b0c442")


def test_a_lock_has_a_version_and_its_hashes_for_each_package(tmp_path: Path) -> None:
    (tmp_path / "frozen").write_text("torch==2.13.0+cpu\nclick==8.4\n-e here\n")
    pins = read_pins(tmp_path / "frozen")
    assert pins == {"torch": "2.13.0", "click": "8.4"}
    text = locked(pins, {"torch": ["1"], "click": ["2", "3"]})
    assert text == "click==8.4 \\\n    --hash=sha256:2 \\\n    --hash=sha256:3\ntorch==2.13.0 \\\n    --hash=sha256:1\n"
    with pytest.raises(SystemExit, match=r"torch==2\.13\.0"):
        locked(pins, {"torch": [], "click": ["2"]})
