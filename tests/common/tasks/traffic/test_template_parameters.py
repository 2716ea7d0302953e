"""Parameters of templates in messages: checks of hostile arrays, and pooling."""

import numpy as np
import pytest

from common.arrays import Arrays
from common.errors import WireError
from common.tasks.traffic.properties import check_parameters, is_alike, pool_parameters, templates_of

OVER = np.array([[0, 1], [2, 3]])


def existence(low: float = -1.0, high: float = 1.0, windows: np.ndarray = OVER) -> Arrays:
    values = {"lower": np.full((1, len(windows)), low), "upper": np.full((1, len(windows)), high)}
    return {"template": np.array([2]), "windows": windows, "variables": np.array([0]), **values}


def response(value: float = 2.0) -> Arrays:
    structure = {"template": np.array([5]), "windows": np.array([[0, 1], [1, 2]]), "variables": np.array([0])}
    return {**structure, "trigger": np.ones((1, 1)), "response": np.full((1, 1), value)}


def test_honest_parameters_are_accepted() -> None:
    check_parameters(existence(), 4, with_structure=True)
    check_parameters(response(np.inf), 4, with_structure=True)
    check_parameters({"lower": np.zeros((2, 3)), "upper": np.ones((2, 3))}, 4, with_structure=False)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"secret": np.zeros((1, 2))}, "unknown parameters: .*secret"),
        ({"lower": np.zeros((1, 3))}, "not numbers by variable and window"),
        ({"lower": np.zeros((1, 2), "U1")}, "not numbers by variable and window"),
        ({"lower": np.full((1, 2), np.nan)}, "non-finite"),
        ({"upper": np.full((1, 2), np.inf)}, "non-finite"),
        ({"template": np.array([3])}, "template 3 has parameters of another one"),
        ({"template": np.array([99])}, "template 99"),
        ({"template": np.array([2.0])}, "not whole numbers"),
        ({"windows": np.array([[0, 1], [2, 4]])}, "outside the 4 steps"),
        ({"windows": np.array([[0, 1], [3, 2]])}, "outside the 4 steps"),
        ({"windows": np.array([[-1, 1], [2, 3]])}, "outside the 4 steps"),
        ({"windows": np.array([[0, 1]])}, "windows of the property do not match"),
        ({"variables": np.array([0, 1])}, "variables of the property do not match"),
        ({"variables": np.array([-1])}, "variables of the property do not match"),
    ],
)
def test_malformed_parameters_are_refused(changes: Arrays, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        check_parameters({**existence(), **changes}, 4, with_structure=True)


def test_the_structure_is_sent_without_noise_and_never_with_it() -> None:
    bare = {name: existence()[name] for name in ("lower", "upper")}
    for arrays, with_structure in ((existence(), False), (bare, True)):
        with pytest.raises(WireError, match="unknown parameters"):
            check_parameters(arrays, 4, with_structure=with_structure)


def test_a_response_beyond_the_forecast_is_refused() -> None:
    with pytest.raises(WireError, match="outside the 3 steps"):
        check_parameters(response(), 3, with_structure=True)


def test_the_weakest_of_every_parameter_is_pooled_among_members_of_the_common_template() -> None:
    pooled = pool_parameters([existence(-1, 1), response(), existence(-3, 0.5), existence(9, 9, OVER[:1])])
    assert (pooled["lower"].tolist(), pooled["upper"].tolist()) == ([[-3, -3]], [[1, 1]])
    assert pooled["template"].tolist() == [2]
    assert pool_parameters([response(2.0), response(np.inf)])["response"].tolist() == [[2.0]]
    assert pool_parameters([]) == {}
    assert is_alike(pooled, existence())
    assert not is_alike(pooled, existence(windows=OVER[:1]))


def test_properties_are_found_among_stored_arrays() -> None:
    memory = {name: {"ann": array} for name, array in existence().items()}
    assert templates_of(memory, ["ann", "ben"]).keys() == {"ann"}
    assert templates_of({}, ["ann"]) == {}
