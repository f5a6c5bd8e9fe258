"""The text scorer gives PaddleOCR's numbers, and says None where there is nothing to divide."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from pipelines.evaluation.text import TextScorer, match_greedily, score_image, size_bucket
from pipelines.records import TextAnnotation, TextPrediction, TextRegion

PAGE_HW = (800, 600)


def box(left: float, top: float, width: float, height: float) -> np.ndarray:
    return np.array(
        [[left, top], [left + width, top], [left + width, top + height], [left, top + height]], dtype=np.float32
    )


def predicted(*polygons: np.ndarray) -> TextPrediction:
    return TextPrediction(polygons, np.ones(len(polygons), dtype=np.float32))


def annotated(*polygons: np.ndarray, ignored: tuple[np.ndarray, ...] = ()) -> TextAnnotation:
    regions = [TextRegion(points) for points in polygons] + [TextRegion(p, is_ignored=True) for p in ignored]
    return TextAnnotation(tuple(regions))


def score(prediction: TextPrediction, annotation: TextAnnotation) -> dict:
    scorer = TextScorer()
    scorer.update(prediction, annotation, PAGE_HW)
    return scorer.compute()


def icdar_loop(prediction: TextPrediction, annotation: TextAnnotation, threshold: float) -> tuple[int, int, int]:
    """(matched, counted regions, counted predictions): DetectionIoUEvaluator's loops, pair by pair."""
    regions = [(shapely.Polygon(region.points_px), region.is_ignored) for region in annotation.regions]
    predictions = [shapely.Polygon(polygon) for polygon in prediction.polygons_px]
    on_ignored = [
        any(ignored and polygon.intersection(region).area / polygon.area > 0.5 for region, ignored in regions)
        for polygon in predictions
    ]
    taken: set[int] = set()
    matched = 0
    for region, is_ignored in regions:
        for index, polygon in enumerate(predictions):
            if is_ignored or on_ignored[index] or index in taken:
                continue
            if polygon.intersection(region).area / polygon.union(region).area > threshold:
                taken.add(index)
                matched += 1
                break
    return matched, sum(not ignored for _, ignored in regions), on_ignored.count(False)


def random_page(rng: np.random.Generator, crowding: float) -> tuple[TextPrediction, TextAnnotation]:
    """Quads in disorder with noisy, missing, doubled and invented predictions; more overlap with `crowding`."""
    num_regions = int(rng.integers(0, 25))
    corners = rng.uniform(0, 300 / crowding, (num_regions, 1, 2))
    sizes = rng.uniform(20, 80, (num_regions, 1, 2))
    unit = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=float)
    quads = corners + unit * sizes + rng.uniform(-4, 4, (num_regions, 4, 2))
    regions = tuple(TextRegion(quad, is_ignored=bool(rng.random() < 0.2)) for quad in quads)
    copies = np.concatenate([quads[rng.random(num_regions) < 0.8], quads[rng.random(num_regions) < 0.3]])
    noisy = copies + rng.normal(0, 3, copies.shape)
    return predicted(*rng.permutation(noisy).astype(np.float32)), TextAnnotation(regions)


@pytest.mark.parametrize("crowding", [0.3, 1.0, 4.0], ids=["sparse", "page", "crowded"])
def test_counts_agree_with_the_pairwise_loop_on_random_pages(crowding: float) -> None:
    rng = np.random.default_rng(7)
    thresholds = (0.3, 0.5, 0.7, 0.8)
    seen_matches = 0
    for _ in range(40):
        prediction, annotation = random_page(rng, crowding)
        counts = score_image(prediction, annotation, thresholds)
        for threshold, matched in zip(thresholds, counts.num_matched, strict=True):
            expected = icdar_loop(prediction, annotation, threshold)
            assert (matched, counts.num_regions, counts.num_predictions) == expected
            seen_matches += matched
    assert seen_matches > 100  # the comparison was about something


def test_numbers_worked_by_hand() -> None:
    # 10 x 10 regions. IoU: exact 1; 10 x 6 inside 10 x 10 = .6; shifted by 2: 80 / 120 = .667; one invented.
    annotation = annotated(box(0, 0, 10, 10), box(20, 0, 10, 10), box(40, 0, 10, 10))
    metrics = score(predicted(box(0, 0, 10, 10), box(20, 0, 10, 6), box(42, 0, 10, 10), box(90, 0, 9, 9)), annotation)
    assert metrics["precision_50"] == 3 / 4 and metrics["recall_50"] == 1 and metrics["hmean_50"] == 6 / 7
    assert metrics["precision_70"] == 1 / 4 and metrics["recall_70"] == 1 / 3 and metrics["hmean_70"] == 2 / 7
    assert (metrics["num_images"], metrics["num_regions"], metrics["num_predictions"]) == (1, 3, 4)


def test_an_iou_exactly_at_the_threshold_does_not_match() -> None:
    annotation = annotated(box(0, 0, 10, 10))
    assert score(predicted(box(0, 0, 10, 5)), annotation)["recall_50"] == 0
    assert score(predicted(box(0, 0, 10, 5.1)), annotation)["recall_50"] == 1


def test_prediction_mostly_on_an_ignore_region_costs_and_earns_nothing() -> None:
    annotation = annotated(box(0, 0, 10, 10), ignored=(box(50, 0, 10, 10),))
    metrics = score(predicted(box(0, 0, 10, 10), box(50, 0, 10, 10), box(54, 0, 10, 10)), annotation)
    assert metrics["hmean_50"] == 1 and metrics["num_ignored_predictions"] == 2  # 6/10 of the third lies on it
    assert score(predicted(box(0, 0, 10, 10), box(56, 0, 10, 10)), annotation)["precision_50"] == 1 / 2


def test_one_prediction_over_two_regions_earns_one_match_at_most() -> None:
    twice = annotated(box(0, 0, 10, 10), box(0, 0, 10, 10))
    assert score(predicted(box(0, 0, 10, 10)), twice)["recall_50"] == 1 / 2
    assert score(predicted(box(0, 0, 10, 10), box(0, 0, 10, 10)), annotated(box(0, 0, 10, 10)))["precision_50"] == 1 / 2


def test_greedy_follows_the_given_order_even_where_a_maximum_matching_has_more() -> None:
    # Region 0 could take either prediction, region 1 only the first: greedy spends the first on region 0.
    assert match_greedily(np.array([[0.6, 0.9], [0.9, 0.0]]), 0.5) == [(0, 0)]
    assert match_greedily(np.array([[0.6, 0.9], [0.9, 0.0]]), 0.7) == [(0, 1), (1, 0)]


def test_undefined_ratios_are_none_and_silence_on_text_is_zero() -> None:
    blank = score(predicted(), annotated())
    assert blank["hmean_50"] is None and blank["precision_50"] is None and blank["recall_50"] is None
    all_ignored = score(predicted(box(0, 0, 5, 5)), annotated(ignored=(box(0, 0, 9, 9),)))
    assert all_ignored["hmean_50"] is None and all_ignored["num_ignored_regions"] == 1
    silent = score(predicted(), annotated(box(0, 0, 10, 10)))
    assert (silent["precision_50"], silent["recall_50"], silent["hmean_50"]) == (None, 0, 0)
    invented = score(predicted(box(0, 0, 10, 10)), annotated())
    assert (invented["precision_50"], invented["recall_50"], invented["hmean_50"]) == (0, None, 0)


def test_images_are_summed_before_dividing_not_averaged() -> None:
    scorer = TextScorer()
    scorer.update(predicted(box(0, 0, 10, 10)), annotated(box(0, 0, 10, 10)), PAGE_HW)
    nine = annotated(*(box(20 * i, 0, 10, 10) for i in range(9)))
    scorer.update(predicted(), nine, PAGE_HW)
    assert scorer.compute()["recall_50"] == 1 / 10  # a mean of images would say 1/2


def test_buckets_split_by_longest_side_and_sum_to_the_whole() -> None:
    scorer = TextScorer()
    annotation = annotated(box(0, 0, 10, 10))
    scorer.update(predicted(box(0, 0, 10, 10)), annotation, (800, 600))
    scorer.update(predicted(), annotation, (1200, 2000))
    scorer.update(predicted(), annotation, (10, 10), bucket="fax")
    metrics = scorer.compute()
    recalls = {name: part["recall_50"] for name, part in metrics["by_bucket"].items()}
    assert recalls == {"small": 1, "large": 0, "fax": 0}
    assert metrics["recall_50"] == 1 / 3 and metrics["num_images"] == 3


@pytest.mark.parametrize(("size_hw", "bucket"), [((1999, 10), "small"), ((10, 2000), "large"), ((7016, 4961), "large")])
def test_size_bucket_edges_belong_to_the_upper_bucket(size_hw: tuple[int, int], bucket: str) -> None:
    assert size_bucket(size_hw) == bucket


def test_size_bucket_takes_other_edges_and_refuses_ones_that_do_not_fit() -> None:
    assert [size_bucket((side, 1), (10, 20), ("a", "b", "c")) for side in (9, 10, 20)] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="one name more than edges"):
        size_bucket((1, 1), (10, 20), ("a", "b"))
    with pytest.raises(ValueError, match="must rise"):
        size_bucket((1, 1), (20, 10), ("a", "b", "c"))


def test_compute_is_repeatable_and_reset_forgets() -> None:
    scorer = TextScorer()
    scorer.update(predicted(box(0, 0, 10, 10)), annotated(box(0, 0, 10, 10)), PAGE_HW)
    assert scorer.compute() == scorer.compute()
    scorer.reset()
    assert scorer.compute()["num_images"] == 0 and scorer.compute()["by_bucket"] == {}


def test_degenerate_predictions_count_as_false_and_never_crash() -> None:
    line = np.array([[0, 0], [5, 0], [10, 0]], dtype=np.float32)
    broken = [
        np.zeros((0, 2)), np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((4, 2)), line, np.full((4, 2), np.nan),
        np.full((4, 2), np.inf),
    ]  # fmt: skip
    metrics = score(predicted(*broken, box(0, 0, 10, 10)), annotated(box(0, 0, 10, 10), ignored=(box(50, 50, 9, 9),)))
    assert metrics["num_predictions"] == 8 and metrics["precision_50"] == 1 / 8 and metrics["recall_50"] == 1


def test_thresholds_name_the_keys_and_bad_ones_are_refused() -> None:
    assert "hmean_57" in TextScorer((0.57,)).compute()
    with pytest.raises(ValueError, match="between 0 and 1"):
        TextScorer((50,))
