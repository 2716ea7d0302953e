"""Export of a network to ONNX, and its comparison with torch."""

import gc
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO

import numpy as np
import torch

from client.tasks.registry import ExportableNetwork
from common.arrays import Array, Arrays
from common.errors import ConfigError, RunError
from deploy.serving.load import EXTRA

EXAMPLE_SIZE, SIZES = 7, (2, 5, 30)
"""Size of the traced example, and of the inputs of the comparison."""

INPUTS = 20
"""Number of compared inputs."""

TOLERANCE = 1e-5
"""Largest difference of an output, relative where it exceeds 1."""


def to_onnx(network: ExportableNetwork, properties: Mapping[str, str]) -> bytes:
    """Return the network as an ONNX file that computes the same on 20 inputs of three sizes.

    Raises:
        ConfigError: The extra `serving` is not installed.
        RunError: The network cannot be exported, or the file computes other values.
    """
    for package in ("onnx", "onnxruntime", "onnxscript"):
        if not find_spec(package):
            raise ConfigError(f"export-model needs {package}; {EXTRA}")
    sizes = {name: torch.export.Dim(name) for axes in network.axes.values() for name in axes.values()}
    try:
        with torch.no_grad(), _quiet():
            program = torch.onnx.export(
                network.module,
                _tensors(network, network.sample(EXAMPLE_SIZE, np.random.default_rng(0))),
                dynamo=True,
                dynamic_shapes=tuple(
                    {axis: sizes[name] for axis, name in axes.items()} for axes in network.axes.values()
                ),
                input_names=list(network.axes),
                output_names=[network.output],
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise RunError(
            f"torch cannot export this model to ONNX ({str(error).splitlines()[0]}); no file written"
        ) from None
    assert program is not None  # dynamo=True returns a program
    proto = program.model_proto
    for key, value in properties.items():
        proto.metadata_props.add(key=key, value=value)
    content: bytes = proto.SerializeToString()
    _compare(network, content)
    return content


def _compare(network: ExportableNetwork, content: bytes) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    for k in range(INPUTS):
        inputs = network.sample(SIZES[k % len(SIZES)], rng)
        [found] = session.run([network.output], inputs)
        with torch.no_grad():
            wanted: Array = network.module(*_tensors(network, inputs)).numpy()
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE):
            difference = "another shape" if found.shape != wanted.shape else f"{np.abs(found - wanted).max():.2g}"
            raise RunError(f"the ONNX file differs from torch by {difference}, limit {TOLERANCE:g}; no file written")


def _tensors(network: ExportableNetwork, inputs: Arrays) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.ascontiguousarray(inputs[name])) for name in network.axes)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter off the terminal, and Python's collector off the objects of its imports."""
    before, collects = logging.root.manager.disable, gc.isenabled()
    logging.disable(logging.WARNING)
    gc.disable()
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
        if collects:
            gc.enable()
