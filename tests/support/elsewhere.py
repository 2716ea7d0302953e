"""A stand-in for a GPU: tensors that say they are on another device, and compute on the processor.

PyTorch's `meta` device computes nothing. Here its tensors hold numbers, so that results can be compared bit for bit. As on a
GPU, an operation refuses tensors of two devices; numbers without dimensions, and indices that are copied, excepted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

ELSEWHERE = torch.device("meta")
"""Name of the other device."""


class There(Tensor):
    """Tensor on the other device; `here` holds its numbers."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> "There":
        made: There = Tensor._make_wrapper_subclass(
            cls, here.shape, here.stride(), here.storage_offset(), dtype=here.dtype, device=ELSEWHERE
        )
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse to compute outside of `Elsewhere`, such as in NumPy."""
        raise RuntimeError(f"{func}: this tensor is on another device")


class _Literals(TorchFunctionMode):
    """Make tensors of Python's numbers on the processor and move them, as PyTorch does for a GPU by itself."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute any other function as it is."""
        given = {**(kwargs or {})}
        if func is Tensor.__getitem__ and isinstance(args[1], tuple):
            args = (
                args[0],
                tuple(torch.tensor(one, device="cpu") if isinstance(one, list) else one for one in args[1]),
            )
        if func is Tensor.new_tensor and isinstance(args[0], There):
            return torch.tensor(args[1], dtype=args[0].dtype, device="cpu").to(ELSEWHERE)
        if func is torch.tensor and torch.device(given.get("device") or "cpu") == ELSEWHERE:
            return func(*args, **{**given, "device": "cpu"}).to(ELSEWHERE)
        return func(*args, **given)


class Elsewhere(TorchDispatchMode):
    """Let tensors be made on the other device, and count their ways between it and the processor."""

    def __init__(self) -> None:
        super().__init__()
        self.moves, self._literals = 0, _Literals()

    def __enter__(self) -> "Elsewhere":
        self._literals.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._literals.__exit__(*error)

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Compute an operation where its tensors are.

        Raises:
            RuntimeError: They are on two devices.
        """
        given = {**(kwargs or {})}
        found = [one for one in tree_leaves((args, given)) if isinstance(one, Tensor)]
        is_there = [isinstance(one, There) for one in found]
        assert not any(one.device == ELSEWHERE and type(one) is not There for one in found), f"{func}: without numbers"
        target = torch.device(given["device"]) if given.get("device") else None
        moves = bool(found) and str(func) in ("aten._to_copy.default", "aten.copy_.default")
        if str(func) == "aten.index.Tensor" and is_there[0]:
            self.moves += not all(is_there)
        elif moves:
            others = {isinstance(one, There) for one in found} | ({target == ELSEWHERE} if target else set())
            self.moves += len(others) > 1
        elif any(is_there) and any(one.dim() for one, there in zip(found, is_there, strict=True) if not there):
            raise RuntimeError(f"{func}: tensors of two devices")
        elif any(is_there) and str(func) == "aten._local_scalar_dense.default":
            self.moves += 1
        if target is not None:
            given["device"] = torch.device("cpu")
        result = func(*tree_map(_here, args), **tree_map(_here, given))
        stays = target == ELSEWHERE if target else isinstance(found[0], There) if moves else any(is_there)
        if not stays:
            return result
        originals = {id(one.here): one for one in found if isinstance(one, There)}

        def there(value: Any) -> Any:
            """Return the tensor that an operation changed in place, or a new one."""
            if not isinstance(value, Tensor):
                return value
            return originals[id(value)] if id(value) in originals else There(value)

        return tree_map(there, result)


def _here(value: Any) -> Any:
    return value.here if isinstance(value, There) else value
