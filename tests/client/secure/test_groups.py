"""A client of a run with groups joins one sum a round."""

import pytest

from common.arrays import add_prefix
from common.errors import RefusedError
from common.tasks.registry import TASKS, closed_form_of
from tests.client.secure.test_training_sums import RHO, exact_blocks, summed
from tests.support.summing import Summing
from tests.support.toys import CATALOGUE


@pytest.mark.parametrize("rho", [0.0, RHO])
def test_a_client_joins_one_group_a_round(rho: float) -> None:
    config = summed(unit="client" if rho else "none", **{"secure-sums.groups": 3})
    server, arrays = Summing(config), exact_blocks(summed(unit="none"))[0]
    first, other = (server.terms(arrays, rho, channel=f"train/{g}") for g in (0, 2))
    server.first.train(server.request(first))
    server.first.train(server.request(first))
    with pytest.raises(RefusedError, match="this client's sum of round 1 is train/0, not train/2; nothing was sent"):
        server.first.train(server.request(other))
    for channel in ("train", "train/3"):
        with pytest.raises(RefusedError, match="channel is not what this client requires"):
            server.first.train(server.request(server.terms(arrays, rho, channel=channel)))


def test_a_client_repeats_its_part_of_a_closed_form_in_its_own_group_alone() -> None:
    config = summed("ridge", unit="none", **{"secure-sums.groups": 3})
    server, form = Summing(config), closed_form_of("rules")
    started = form.start(config.task_run(TASKS["rules"], CATALOGUE))
    arrays = add_prefix("update", form.template(started))
    first, repeat, other = (server.terms(arrays, channel=one) for one in ("train/0", "repeat/1/0", "repeat/2/1"))
    server.first.train(server.request(first, model={}, statics=started))
    server.first.train(server.request(repeat, model={}, statics=started))
    for refused in (first, other):
        with pytest.raises(RefusedError, match="this client's sum of round 1 is repeat/1/0, not"):
            server.first.train(server.request(refused, model={}, statics=started))
