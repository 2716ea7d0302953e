"""Choice of the device of local training."""

import pytest
import torch

from client.device import choose_device, describe_device
from common.errors import ConfigError


def test_the_processor_is_there_and_auto_takes_a_gpu_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device("cpu") == "cpu"
    for is_there, device in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda is_there=is_there: is_there)
        assert choose_device("auto") == device
    assert choose_device("cuda") == "cuda"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA T4")
    assert describe_device("cuda") == "cuda (NVIDIA T4)"
    assert describe_device("cuda", solves=True) == "cpu"


@pytest.mark.parametrize(
    ("name", "build", "message"),
    [
        ("gpu", None, "--device gpu: unknown; use auto, cpu, cuda or mps"),
        ("cuda", None, "has no CUDA; install a build with it (make demo INDEX=), or use --device cpu"),
        ("cuda", "13.0", "--device cuda: PyTorch finds no GPU; see nvidia-smi, or use --device cpu"),
        ("mps", None, "--device mps: PyTorch finds no GPU of Apple's; use --device cpu"),
    ],
)
def test_a_device_that_is_not_there_is_one_line(
    name: str, build: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ConfigError) as error:
        choose_device(name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
