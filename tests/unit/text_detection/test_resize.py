"""The resize rule equals the deployed one bit for bit, and says what inference.yml can't say."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.errors import UsageError
from pipelines.text_detection.resize import ResizeRule


@pytest.fixture(scope="module")
def deployed():
    """The text detection module of paddlex."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
        return pytest.importorskip("paddlex.inference.models.text_detection.processors")


@pytest.mark.parametrize("limit_type", ["max", "min", "resize_long"])
@pytest.mark.parametrize("limit_side", [64, 736, 960, 1600])
def test_rule_equals_deployed_operator_bit_for_bit(deployed, limit_type, limit_side) -> None:
    rng = np.random.default_rng(limit_side)
    rule = ResizeRule(limit_side, limit_type, max_side=2000)
    operator = deployed.DetResizeForTest(limit_side_len=limit_side, limit_type=limit_type)
    for _ in range(6):
        height, width = (int(side) for side in rng.integers(4, 1400, size=2))
        image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        ours, scale_xy = rule.apply(image)
        theirs, shapes = operator([image], max_side_limit=2000)
        assert np.array_equal(ours, theirs[0])
        assert tuple(shapes[0][2:]) == scale_xy[::-1]
        assert ours.shape[:2] == rule.size_hw((height, width))


def test_tiny_image_is_padded_like_the_deployed_one(deployed) -> None:
    image = np.full((20, 30, 3), 200, np.uint8)
    ours, _ = ResizeRule(960).apply(image)
    theirs, _ = deployed.DetResizeForTest(limit_side_len=960, limit_type="max")([image])
    assert ours.shape == (32, 32, 3)
    assert np.array_equal(ours, theirs[0])


def test_sizes_worked_by_hand() -> None:
    assert ResizeRule(960).size_hw((7016, 4961)) == (960, 672)  # 678.8 -> 678 -> 21.2 strides
    assert ResizeRule(960).size_hw((933, 461)) == (928, 448)  # smaller: kept, to strides (14.4 -> 14)
    assert ResizeRule(1600).size_hw((80, 48)) == (64, 64)  # 2.5 and 1.5 strides: halves to even
    assert ResizeRule(736, "min").size_hw((7016, 4961)) == (4000, 2816)  # the 4000 px ceiling
    assert ResizeRule(960, "resize_long").size_hw((100, 50)) == (960, 480)


def test_exported_rule_is_read_back_by_the_deployed_predictor() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
        predictor = pytest.importorskip("paddlex.inference.models.text_detection.predictor")
    rule = ResizeRule(1600)
    read = predictor._get_text_det_resize_defaults("PP-OCRv4_mobile_det", rule.to_inference_yml())
    assert read == (rule.limit_side, rule.limit_type)


@pytest.mark.parametrize("rule", [ResizeRule(736, "min"), ResizeRule(960, "resize_long"), ResizeRule(max_side=3000)])
def test_rule_that_the_file_cannot_say_is_refused(rule: ResizeRule) -> None:
    with pytest.raises(UsageError, match="limit type max"):
        rule.to_inference_yml()


@pytest.mark.parametrize("wrong", [{"limit_side": 0}, {"limit_type": "longest"}, {"max_side": 31}])
def test_impossible_settings_are_refused_by_name(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ResizeRule(**wrong)
