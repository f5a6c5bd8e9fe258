"""The loss scale's arithmetic, and what a device is asked to compute in."""

from __future__ import annotations

import paddle
import pytest

from pipelines.engine.precision import LossScale, Precision, resolve_precision
from pipelines.errors import DataError, UsageError


def test_scale_halves_on_overflow_and_doubles_after_good_updates_in_a_row() -> None:
    scale = LossScale(Precision("fp16"), start=8.0, growth_updates=3)
    values = []
    for is_good in (True, True, False, True, True, True, True):
        scale.after_update(had_overflow=not is_good)
        values.append(scale.value)
    assert values == [8, 8, 4, 4, 4, 8, 8]


def test_overflow_at_the_floor_again_and_again_stops_training_with_a_reason() -> None:
    scale = LossScale(Precision("fp16"), start=2.0, floor=1.0, most_at_floor=2)
    for had_overflow in (True, True, False, True):
        scale.after_update(had_overflow=had_overflow)
    assert scale.value == 1.0
    with pytest.raises(DataError, match=r"overflow even at loss scale 1, in 2 updates .* set train.precision to fp32"):
        scale.after_update(had_overflow=True)


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_other_precisions_have_no_scale_and_never_grow_one(name: str) -> None:
    scale = LossScale(Precision(name), growth_updates=1)
    scale.after_update(had_overflow=False)
    scale.after_update(had_overflow=True)
    assert scale.value == 1.0 and not scale.is_dynamic


def test_a_restored_scale_goes_on_where_the_other_was() -> None:
    ours, theirs = (LossScale(Precision("fp16"), start=8.0, growth_updates=2) for _ in range(2))
    ours.after_update(had_overflow=False)
    theirs.restore(ours.state())
    theirs.after_update(had_overflow=False)
    assert theirs.value == 16.0


def test_unknown_precision_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="auto, fp32, fp16, bf16, but got 'fp8'"):
        resolve_precision("fp8")


def test_on_a_cpu_auto_is_fp32_and_half_precision_is_refused_not_ignored() -> None:
    if paddle.device.get_device() != "cpu":
        pytest.skip("about CPUs, and this device is a GPU")
    assert resolve_precision("auto").name == "fp32"
    for name in ("fp16", "bf16"):
        with pytest.raises(UsageError, match=f"{name} needs a GPU, but the device is a CPU; use fp32 or auto"):
            resolve_precision(name)


@pytest.mark.parametrize(("capability", "is_accepted"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_bf16_is_refused_on_cards_that_only_emulate_it(
    capability: tuple[int, int], is_accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paddle.device, "get_device", lambda: "gpu:0")
    monkeypatch.setattr(paddle.device.cuda, "get_device_capability", lambda: capability)
    assert resolve_precision("auto").name == "fp16"
    if is_accepted:
        assert resolve_precision("bf16").name == "bf16"
    else:
        with pytest.raises(UsageError, match=r"compute capability 8.0, but this card has 7.5; use fp16"):
            resolve_precision("bf16")


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "dtype"), [("fp16", paddle.float16), ("bf16", paddle.bfloat16)])
def test_autocast_computes_convolutions_low_and_leaves_weights_in_float32(name: str, dtype: object) -> None:
    if not paddle.device.is_compiled_with_cuda() or paddle.device.cuda.device_count() == 0:
        pytest.skip("needs a CUDA device")
    convolution = paddle.nn.Conv2D(3, 4, 3)
    with Precision(name).autocast():
        assert convolution(paddle.ones([1, 3, 8, 8])).dtype == dtype
    assert convolution.weight.dtype == paddle.float32


def test_autocast_of_fp32_changes_nothing() -> None:
    convolution = paddle.nn.Conv2D(3, 4, 3)
    with Precision().autocast():
        assert convolution(paddle.ones([1, 3, 8, 8])).dtype == paddle.float32
