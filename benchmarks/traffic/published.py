"""The paper's Table 2 (algorithms.md §3.10), on data that are not public in this form (FHWA 2019): for orientation."""

NETWORKS = ("rnn", "gru", "lstm", "transformer")

TABLE_2 = {
    "fedavg": (".128 / 79.0", ".154 / 80.5", ".126 / 81.8", ".588 / 78.0"),
    "fedprox": (".128 / 78.9", ".154 / 80.4", ".126 / 81.9", ".588 / 78.0"),
    "fedrep": (".164 / 80.0", ".279 / 80.1", ".214 / 81.1", ".929 / 57.0"),
    "ditto": (".124 / 79.2", ".153 / 80.4", ".128 / 81.5", ".591 / 78.0"),
    "ifca": (".117 / 77.9", ".140 / 77.5", ".121 / 80.4", ".063 / 73.4"),
    "fedstl": (".095 / 81.7", ".152 / 81.8", ".119 / 83.3", ".029 / 79.0"),
}
"""Row -> MSE and ρ in % on each network."""

TEACHER = (".076", ".118", ".099", ".287")
"""MSE of FedSTL's teacher; its ρ is 100."""


def published(key: str) -> str:
    """What the paper has in the place of a row of that key, `MSE / ρ` and of FedSTL its teacher's MSE; empty without one."""
    network, _, method = key.rpartition("-")
    if method not in TABLE_2 or network not in ("", *NETWORKS):
        return ""
    place = NETWORKS.index(network or "gru")
    teacher = f", teacher {TEACHER[place]}" if method == "fedstl" else ""
    return TABLE_2[method][place] + teacher
