"""DB post-processing agrees box for box with the deployed one, and survives empty and degenerate maps."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from pipelines.errors import UsageError
from pipelines.text_detection.boxes import PostProcess


@pytest.fixture(scope="module")
def deployed():
    """The text detection module of paddlex."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
        return pytest.importorskip("paddlex.inference.models.text_detection.processors")


def noisy_map(rng: np.random.Generator, size_hw: tuple[int, int], num_kernels: int) -> np.ndarray:
    """Blurred rotated rectangles, from specks to lines, some over the border, under speckle noise."""
    drawn = np.zeros(size_hw, np.float32)
    for _ in range(num_kernels):
        centre = tuple(rng.uniform((0, 0), size_hw[::-1]))
        corners = cv2.boxPoints((centre, (rng.uniform(3, 150), rng.uniform(1, 30)), rng.uniform(-90, 90)))
        cv2.fillPoly(drawn, [corners.astype(np.int32)], float(rng.uniform(0.5, 1)))
    noise = rng.normal(0, 0.06, size_hw).astype(np.float32)
    return np.clip(cv2.GaussianBlur(drawn, (5, 5), 1.0) + noise, 0, 1)


@pytest.mark.parametrize("box_type", ["quad", "poly"])
@pytest.mark.parametrize("settings", [(0.3, 0.6, 1.5), (0.2, 0.4, 2.0), (0.5, 0.5, 1.2)])
def test_boxes_equal_the_deployed_ones(deployed, box_type, settings) -> None:
    rng = np.random.default_rng(7)
    ours = PostProcess(*settings, box_type=box_type)
    theirs = deployed.DBPostProcess(settings[0], settings[1], 1000, settings[2], box_type=box_type)
    num_boxes = 0
    for _ in range(25):
        height, width = (int(side) * 32 for side in rng.integers(1, 16, size=2))
        source_hw = tuple(int(side) for side in rng.integers(20, 3000, size=2))
        probability_map = noisy_map(rng, (height, width), int(rng.integers(0, 60)))
        found = ours(probability_map, source_hw)
        polygons, confidences = theirs([probability_map[None, None]], [np.array([*source_hw, 1.0, 1.0])])
        assert len(found.polygons_px) == len(polygons[0])
        for one, other in zip(found.polygons_px, polygons[0], strict=True):
            assert np.array_equal(one, other)
        np.testing.assert_allclose(found.confidences, confidences[0], rtol=1e-6)
        num_boxes += len(found.confidences)
    assert num_boxes > 30


def test_thin_kernels_are_refused_exactly_where_the_deployed_ones_are(deployed) -> None:
    """The quick refusal by bounding box must not lose a box: every small shape of noise, no score test."""
    rng = np.random.default_rng(3)
    probability_map = (rng.random((320, 320)) < 0.35).astype(np.float32)
    found = PostProcess(0.3, 0.01, max_candidates=10**6)(probability_map, (320, 320))
    theirs = deployed.DBPostProcess(0.3, 0.01, 10**6, 1.5)
    polygons, _ = theirs([probability_map[None, None]], [np.array([320, 320, 1.0, 1.0])])
    assert len(polygons[0]) > 20
    assert np.array_equal(np.stack(found.polygons_px), polygons[0])


def test_one_kernel_worked_by_hand() -> None:
    probability_map = np.zeros((96, 160), np.float32)
    probability_map[40:51, 20:121] = 0.9  # pixels 20..120 x 40..50: 100 x 10 between centres
    found = PostProcess(unclip_ratio=1.5)(probability_map, (192, 320))  # the source is twice as large
    # distance 1000 * 1.5 / 220 = 6.8 -> 13.2..126.8 x 33.2..56.8, rounded by the offset, then doubled
    np.testing.assert_array_equal(found.polygons_px[0], [[26, 66], [254, 66], [254, 114], [26, 114]])
    assert found.confidences == pytest.approx([0.9], abs=1e-6)


@pytest.mark.parametrize("box_type", ["quad", "poly"])
def test_maps_without_a_box_give_an_empty_prediction(box_type: str) -> None:
    speck = np.zeros((64, 64), np.float32)
    speck[10, 10] = speck[20, 5:50] = 1  # a point and a line one pixel high
    weak = np.zeros((64, 64), np.float32)
    weak[10:30, 10:50] = 0.5  # a kernel, but under the box threshold
    for probability_map in (np.zeros((32, 32), np.float32), speck, weak):
        found = PostProcess(box_type=box_type)(probability_map, (100, 100))
        assert found.polygons_px == ()
        assert found.confidences.shape == (0,)


def test_polygons_stay_inside_the_source_image() -> None:
    full = np.ones((64, 64), np.float32)
    polygon = PostProcess()(full, (100, 200)).polygons_px[0]
    np.testing.assert_array_equal(polygon, [[0, 0], [200, 0], [200, 100], [0, 100]])


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"binary_threshold": 0.0}, "binary_threshold"), ({"box_threshold": 1.5}, "box_threshold"),
     ({"unclip_ratio": 0.0}, "unclip_ratio"), ({"max_candidates": 0}, "max_candidates"),
     ({"box_type": "circle"}, "box_type")],
)  # fmt: skip
def test_impossible_settings_are_refused_by_name(wrong: dict, field: str) -> None:
    with pytest.raises(UsageError, match=field):
        PostProcess(**wrong)
