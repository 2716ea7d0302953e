"""Flower's version, the parts that the door's node uses, and its masks of too few seeds."""

import inspect
from importlib.metadata import requires

import flwr
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
from flwr.supercore.inflatable import inflatable_object
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from packaging.requirements import Requirement


def test_flower_has_a_version_that_fedloom_names() -> None:
    [versions] = [one for one in map(Requirement, requires("fedloom") or ()) if one.name == "flwr" and not one.marker]
    assert flwr.__version__ in versions.specifier


def test_signatures() -> None:
    assert [*inspect.signature(inflate_object_from_contents).parameters][:2] == ["object_id", "object_contents"]
    for function in (inflatable_object.get_all_nested_objects, inflatable_object.get_object_tree):
        assert [*inspect.signature(function).parameters] == ["obj"]
    assert [*inspect.signature(inflatable_object.iterate_object_tree).parameters] == ["tree"]


def test_two_seeds_with_two_words_exchanged_have_the_same_mask_in_flower() -> None:
    seed = bytes(range(32))
    exchanged = seed[4:8] + seed[:4] + seed[8:]
    [mask] = pseudo_rand_gen(seed, 1 << 32, [(100,)])
    [other] = pseudo_rand_gen(exchanged, 1 << 32, [(100,)])
    assert seed != exchanged
    assert (mask == other).all()
