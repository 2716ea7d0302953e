"""Device of local training, chosen by the owner of a client.

This module imports no PyTorch for `cpu`.
"""

from common.errors import ConfigError


def choose_device(name: str) -> str:
    """Return the device of a name; `auto` is `cuda` where PyTorch finds such a GPU, else `cpu`.

    Raises:
        ConfigError: The name is unknown, or this machine or its PyTorch has no such device.
    """
    if name == "cpu":
        return name
    if name not in ("auto", "cuda", "mps"):
        raise ConfigError(f"--device {name}: unknown; use auto, cpu, cuda or mps")
    import torch

    if name != "mps" and torch.cuda.is_available():
        return "cuda"
    if name == "auto":
        return "cpu"
    if name == "mps" and torch.backends.mps.is_available():
        return name
    lack = "PyTorch finds no GPU of Apple's;" if name == "mps" else "PyTorch finds no GPU; see nvidia-smi, or"
    if name == "cuda" and not (torch.version.cuda or torch.version.hip):
        lack = f"this PyTorch {torch.__version__} has no CUDA; install a build with it (make demo INDEX=), or"
    raise ConfigError(f"--device {name}: {lack} use --device cpu")


def require_processor(device: str) -> None:
    """Refuse several processes that train on one GPU.

    Raises:
        ConfigError: The device is one.
    """
    if device != "cpu":
        raise ConfigError(f"--workers shares out processors, and clients train on {device}; remove it, or --device")


def describe_device(name: str, *, solves: bool = False) -> str:
    """Return the device with the model of its GPU; closed forms are solved on the processor in any case."""
    if name != "cuda" or solves:
        return "cpu" if solves else name
    import torch

    return f"cuda ({torch.cuda.get_device_name()})"
