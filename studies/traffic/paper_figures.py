"""The paper's Table 2 (algorithms.md §3.10), for orientation.

Its data are not public in this form (FHWA 2019).
"""

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

CLUSTERS = {
    "ifca": (".107 / 78.9", ".134 / 77.7", ".110 / 81.5", ".061 / 72.8"),
    "fedstl": (".096 / 81.7", ".148 / 81.7", ".111 / 83.4", ".025 / 77.0"),
}
"""Figures of the clusters' models, the paper's "-S"."""

TEACHER = (".076", ".118", ".099", ".287")
"""MSE of FedSTL's teacher; its ρ is 100."""


def figures_of(key: str) -> str:
    """Return the paper's figures of a row, `MSE / ρ` of students and clusters and the teacher's MSE.

    The text is empty without any.
    """
    network, _, method = key.rpartition("-")
    if method not in TABLE_2 or network not in ("", *NETWORKS):
        return ""
    place = NETWORKS.index(network or "gru")
    teacher = f", teacher {TEACHER[place]}" if method == "fedstl" else ""
    cluster = f", cluster {CLUSTERS[method][place]}" if method in CLUSTERS else ""
    return f"{TABLE_2[method][place]}{cluster}{teacher}"
