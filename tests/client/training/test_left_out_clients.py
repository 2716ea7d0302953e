"""Clients whose reply the server left out, beside others that share the rows that they do not touch."""

from dataclasses import replace

import pytest

from client.state import MemoryStore
from client.training import state as cohort
from client.training.snapshot import dump_stores, load_stores
from client.training.state import split_histories
from tests.client.training.test_sharing_cohort import (
    CLIENTS,
    EVERYONE,
    assert_same_bits,
    is_short,
    members,
    states_of,
    sums_of,
    train_round,
)
from tests.support.toys import configured

GONE = EVERYONE[::2]
OTHERS = EVERYONE[1::2]
"""Number of clients that leaves no numbers after the last whole vector, in whole tables either."""


@pytest.mark.parametrize("is_restored", [False, True])
def test_it_leaves_the_stack_and_all_have_the_bits_of_whole_tables(
    is_restored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured()
    short, long = members(config), members(config)
    for clients in (short, long):
        with monkeypatch.context() as patch:
            if clients is long:
                patch.setattr(cohort, "find_own_rows", lambda participants: None)
            train_round(config, clients, 1)
            train_round(config, clients, 2, alone=GONE)
            if is_restored:
                state = dump_stores([client.store for client in clients], "toy")
                clients[:] = [replace(client, store=MemoryStore()) for client in clients]
                load_stores(state, [client.store for client in clients], "toy")
            train_round(config, clients, 3, GONE, last=1)  # the server did not count their round 2
    ours = [train_round(config, short, number, OTHERS, with_all=True)[1] for number in (3, 4)]
    assert [is_short(client) for client in short] == [k in OTHERS for k in EVERYONE]
    theirs = [train_round(config, long, number, OTHERS)[1] for number in (3, 4)]
    for one, other in zip(ours, theirs, strict=True):
        assert_same_bits(sums_of(one), sums_of(other))
    assert_same_bits(states_of(short), states_of(long))


def test_clients_of_a_stack_go_on_together_and_those_that_were_left_out_by_themselves() -> None:
    config = configured()
    clients = members(config)

    def split(last: dict[int, int]) -> tuple[list[list[int]], list[int]]:
        memories = [client.store.load("toy") for client in clients]
        requests = [replace(clients[0].request, round=3, shared_round=last.get(k, 2)) for k in EVERYONE]
        shared = [replace(request, model=clients[0].request.model, shared={}) for request in requests]
        one = [replace(request, shared=shared[0].shared) for request in shared]
        return split_histories(memories, one)

    assert split({}) == ([], [*EVERYONE]), "before the first round"
    train_round(config, clients, 1)
    train_round(config, clients, 2, alone=[3, 5])
    assert split({}) == ([[*EVERYONE]], []), "all counted"
    assert split({3: 1}) == ([[k for k in EVERYONE if k != 3]], [3])
    assert split(dict.fromkeys(EVERYONE, 1)) == ([[k for k in EVERYONE if k not in (3, 5)]], [3, 5]), "a lost round"
    assert split(dict.fromkeys(range(1, CLIENTS), 1))[0] == [[k for k in range(1, CLIENTS) if k not in (3, 5)]]
