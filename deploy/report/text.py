"""Sizes, times, costs and privacy statements as people read them."""

import math

from server.events import Privacy, Result

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


def measured_by(result: Result) -> str:
    """Of how many clients the metrics are; empty if of all, or none."""
    shared = (client.metrics.values() for client in result.clients.values())
    some, clients = sum(not all(map(math.isnan, values)) for values in shared), len(result.clients)
    if not 0 < some < clients:
        return ""
    return f"by {some:,} of {clients:,} clients; the others hold nothing out, or keep what they measured"


def privacy(statement: Privacy) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The privacy statement: in plain words, and where something is promised its exact terms by heading."""
    if statement.epsilon is None or statement.epsilon_spent_max is None:
        claim = "No differential privacy: what clients send is exact, and may say something about their data."
        claim += f" Except their counts, which carry {statement.counts}." if statement.counts else ""
        return (f"{claim} Not covered: {', '.join(statement.uncovered)}." if statement.uncovered else claim), {}
    delta = "" if statement.delta is None else f", δ = {statement.delta:g}"
    promise = f"Each client's own ledger stops at ε = {statement.epsilon:g}{delta} for this run, whatever is asked"
    exact = (
        f"unit {statement.unit}",
        statement.neighbours,
        statement.mechanism,
        f"counted in {counted(statement.account)}",
    )
    spent = f"at most ε = {statement.epsilon_spent_max:.3g}{delta} asked of a client: a number to plan with, not the guarantee"
    return (
        f"{_HIDDEN} {_BY_UNIT[statement.unit]} {promise}: {strength(statement.epsilon)}.",
        {"spent": (spent,), "terms": exact, "not covered": tuple(statement.uncovered)},
    )


def strength(epsilon: float) -> str:
    """What to think of an ε, by the tiers of Ponomareva et al. 2023, §5.2: up to 1, up to 10, more."""
    if epsilon <= 1:
        return "a strong promise (ε up to 1)"
    return "a reasonable promise (ε up to 10)" if epsilon <= 10 else "a weak promise (ε above 10)"


def counted(account: str) -> str:
    """What an account counts in: `zCDP (ρ)`."""
    order = account.partition("-")[2]
    return {"zcdp": "zCDP (ρ)", "pure": "pure differential privacy (ε)"}.get(
        account, f"Rényi divergence of order {order}"
    )


def cost(account: str, value: float) -> str:
    """A cost in the account's unit: `ρ 0.0155`."""
    return f"{ {'zcdp': 'ρ', 'pure': 'ε'}.get(account, 'RDP') } {value:.3g}"


_HIDDEN = "Noise covers all that a client sends in training; the client adds it before anything leaves."
_SEEN = "From what it sent, anybody, the server included, can tell"
_BY_UNIT = {
    "client": f"{_SEEN} its data from any other data only as well as ε allows.",
    "record": f"{_SEEN} whether any one record was in its data only as well as ε allows.",
}


def first_line(reason: str, longest: int = 160) -> str:
    """A reason that fits on a line; stack traces stay in the log."""
    line = reason.strip().partition("\n")[0]
    return line if len(line) <= longest else line[: longest - 1] + "…"
