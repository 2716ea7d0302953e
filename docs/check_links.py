"""Ask every external link of `docs/links.toml` for an answer: `make links`. CI has no internet."""

import sys
import tomllib
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

LINKS = Path(__file__).resolve().parent / "links.toml"
SECONDS = 20
HEADERS = {"User-Agent": "Mozilla/5.0 (fedloom link check)"}
REFUSALS = (HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
"""Answers to programs, of sites that people can open."""


def find_problem(link: str) -> str:
    """Return the reason why a link is broken; empty if it is not."""
    try:
        with urlopen(Request(link, headers=HEADERS), timeout=SECONDS):
            return ""
    except HTTPError as error:
        return "" if error.code in REFUSALS else f"status {error.code}"
    except OSError as error:
        return str(error)


def broken(links: Iterable[str]) -> dict[str, str]:
    """Return link -> reason for the broken ones."""
    return {link: problem for link in links if (problem := find_problem(link))}


if __name__ == "__main__":
    found = broken(tomllib.loads(LINKS.read_text("utf-8")))
    for link, reason in found.items():
        print(f"{link}: {reason}")
    sys.exit(bool(found))
