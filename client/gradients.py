"""`grad_and_value` of `torch.func` without PyTorch's compiler, which fedloom does not use.

It differentiates single records in DP-SGD, and recurrent networks. PyTorch 2.13 imports `torch._dynamo` at the first
gradient, only to suspend compiled autograd. The import takes a second and 80 MB of every client. Its one caller,
`_autograd_grad`, is replaced here by the same computation without it. Gradients are equal bit for bit, which a test checks.
"""

import sys
from collections.abc import Sequence

import torch
from torch import Tensor
from torch._functorch import eager_transforms
from torch.func import grad_and_value as grad_and_value

_with_compiler = eager_transforms._autograd_grad


def _autograd_grad(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_outputs: Sequence[Tensor] | None = None,
    retain_graph: bool = False,
    create_graph: bool = True,
) -> tuple[Tensor, ...]:
    """Return the gradients, zero for inputs on which no output depends; leave other cases to PyTorch."""
    differentiable = all(output.requires_grad for output in outputs)
    if "torch._dynamo" in sys.modules or grad_outputs is not None or not differentiable:
        return _with_compiler(outputs, inputs, grad_outputs, retain_graph, create_graph)
    gradients = torch.autograd.grad(
        outputs, inputs, retain_graph=retain_graph, create_graph=create_graph, allow_unused=True
    )
    return tuple(
        torch.zeros_like(i) if gradient is None else gradient for gradient, i in zip(gradients, inputs, strict=True)
    )


eager_transforms._autograd_grad = _autograd_grad
