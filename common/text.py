"""Texts of quantities."""


def count(number: int, noun: str) -> str:
    """Return a quantity with its noun: `1 client`, `2 clients`, `1,200 clients`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
