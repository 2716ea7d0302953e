"""Sizes, times and privacy statements as people read them."""

from server.events import Privacy

_UNITS = ("B", "kB", "MB", "GB", "TB")


def size(count: float) -> str:
    """Bytes with three significant digits in decimal units: `412 kB`."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    digits = 0 if power == 0 or count >= 99.95 else 1
    return f"{count:.{digits}f} {_UNITS[power]}"


def duration(seconds: float) -> str:
    """`0.42 s`, `12.6 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def privacy(statement: Privacy) -> str:
    """The privacy statement as one sentence or two."""
    if statement.epsilon_spent_max is None:
        claim = "No differential privacy: what clients send is exact, and may say something about their data."
    else:
        delta = "" if statement.delta is None else f", δ = {statement.delta:g}"
        claim = f"ε ≤ {statement.epsilon_spent_max:.3g}{delta} per {statement.unit}, by {statement.mechanism}."
    return f"{claim} Not covered: {', '.join(statement.uncovered)}." if statement.uncovered else claim


def first_line(reason: str, longest: int = 160) -> str:
    """A reason that fits on a line; stack traces stay in the log."""
    line = reason.strip().partition("\n")[0]
    return line if len(line) <= longest else line[: longest - 1] + "…"
