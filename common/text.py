"""Numbers as people say them."""


def count(number: int, noun: str) -> str:
    """`1 client`, `2 clients`, `1,200 clients`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
