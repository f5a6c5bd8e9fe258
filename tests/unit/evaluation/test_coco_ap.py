"""AP equals a hand-worked example and a plain second implementation; what has no object is None."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.coco_ap import average_precision
from tests.unit.evaluation.defect_images import Image, annotated, predicted, random_images

OBJECTS = annotated((0, 0, 40, 40, 0), (100, 0, 140, 40, 0), (200, 0, 240, 40, 0))
# By falling confidence: true, false, true, false; the third object is never found.
DETECTIONS = predicted(
    (0, 0, 40, 40, 0, 0.9), (300, 300, 340, 340, 0, 0.8), (100, 0, 140, 40, 0, 0.7), (0, 0, 40, 40, 0, 0.6)
)


def test_a_hand_worked_example() -> None:
    # Precision 1 at recall 1/3 and 2/3 at recall 2/3: 34 of 101 recall levels (0 to .33) have 1, 33 (to .66) have 2/3.
    average = average_precision([(DETECTIONS, OBJECTS)], 1)
    expected = (34 + 33 * 2 / 3) / 101
    assert average.ap_50 == average.map == pytest.approx(expected)
    assert average.class_ap_50 == (average.ap_50,) and average.map_by_size["medium"] == average.map


def test_the_example_changes_when_the_first_detection_is_of_another_class() -> None:
    other = predicted((0, 0, 40, 40, 1, 0.9), (100, 0, 140, 40, 0, 0.7))
    average = average_precision([(other, OBJECTS)], 2)
    assert average.class_ap_50 == (pytest.approx(34 / 101), None) and average.ap_50 == average.class_ap_50[0]


def test_a_box_that_overlaps_by_seven_tenths_counts_at_five_of_ten_iou_thresholds() -> None:
    # 40 x 40 against 40 x 28 inside it: IoU 0.7, at least .5, .55, .6, .65 and .7.
    image = (predicted((0, 0, 40, 28, 0, 0.9)), annotated((0, 0, 40, 40, 0)))
    average = average_precision([image], 1)
    assert average.ap_50 == pytest.approx(1) and average.map == pytest.approx(0.5)


@pytest.mark.parametrize("seed", [1, 2])
def test_ap_equals_a_plain_second_implementation(seed: int) -> None:
    images = random_images(seed)
    average = average_precision(images, 3)
    by_class = np.array([[plain_ap(images, class_id, iou) for iou in IOU_LEVELS] for class_id in range(3)])
    assert average.class_ap_50 == pytest.approx(by_class[:, 0].tolist(), abs=1e-9)
    assert average.class_map == pytest.approx(by_class.mean(axis=1).tolist(), abs=1e-9)
    assert average.ap_50 == pytest.approx(by_class[:, 0].mean()) and average.map == pytest.approx(by_class.mean())
    assert by_class[:, 0].mean() > 0.3 and by_class.max() < 0.95  # neither nothing nor everything is found


def test_the_second_implementation_notices_a_crowd_that_is_taken_for_an_object() -> None:
    images = random_images(1)
    as_objects = [(p, annotated(*np.column_stack((a.boxes_xyxy_px, a.class_ids)).tolist())) for p, a in images]
    assert abs(plain_ap(as_objects, 0, 0.5) - plain_ap(images, 0, 0.5)) > 0.005


def test_a_detection_on_an_ignore_region_costs_and_earns_nothing() -> None:
    with_region = annotated((0, 0, 40, 40, 0), ignored=((100, 0, 200, 100, 0),))
    on_region = predicted((110, 10, 150, 50, 0, 0.95), (120, 20, 160, 60, 0, 0.94), (0, 0, 40, 40, 0, 0.9))
    assert average_precision([(on_region, with_region)], 1).ap_50 == pytest.approx(1)
    without = average_precision([(on_region, annotated((0, 0, 40, 40, 0)))], 1).ap_50
    assert without == pytest.approx(1 / 3)  # the control: two false positives come first


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        ([], None),
        ([(predicted(), annotated())], None),
        ([(DETECTIONS, annotated())], None),
        ([(DETECTIONS, annotated(ignored=((0, 0, 9, 9, 0),)))], None),
        ([(predicted(), OBJECTS)], 0.0),
    ],
    ids=["no image", "an empty OK image", "an OK image with detections", "ignore regions alone", "nothing found"],
)
def test_what_has_no_object_is_none_and_what_is_not_found_is_zero(images: list[Image], expected: float | None) -> None:
    average = average_precision(images, 2)
    assert average.ap_50 == average.map == average.class_ap_50[0] == expected
    assert average.map_by_size == {"small": None, "medium": expected, "large": None}
    assert average.class_map[1] is None


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    average_precision([(DETECTIONS, OBJECTS)], 1)
    assert capsys.readouterr().out == ""


def test_objects_beyond_the_detections_that_count_can_not_be_found() -> None:
    rows = [(50 * i, 0, 50 * i + 20, 20, 0) for i in range(4)]
    image = (predicted(*((*row, 0.9) for row in rows)), annotated(*rows))
    assert average_precision([image], 1).ap_50 == pytest.approx(1)
    assert average_precision([image], 1, max_detections=2).ap_50 == pytest.approx(51 / 101)


IOU_LEVELS = [0.5 + 0.05 * step for step in range(10)]


def plain_ap(images: list[Image], class_id: int, iou_threshold: float) -> float:
    """AP written down from COCO's definition, detection by detection."""
    marks: list[tuple[float, bool]] = []
    num_objects = 0
    for prediction, annotation in images:
        there = [
            (box, ignored)
            for box, kind, ignored in zip(
                annotation.boxes_xyxy_px.tolist(), annotation.class_ids, annotation.is_ignored, strict=True
            )
            if kind == class_id
        ]
        num_objects += sum(not ignored for _, ignored in there)
        found: set[int] = set()
        for index in np.argsort(-prediction.confidences, kind="stable"):
            if prediction.class_ids[index] == class_id:
                box = prediction.boxes_xyxy_px[index].tolist()
                best, best_iou = None, iou_threshold
                for candidate, (target, ignored) in enumerate(there):
                    iou = plain_iou(box, target)
                    if not ignored and candidate not in found and iou >= best_iou:
                        best, best_iou = candidate, iou
                if best is not None:
                    found.add(best)
                    marks.append((float(prediction.confidences[index]), True))
                elif not any(ignored and plain_share(box, target) >= iou_threshold for target, ignored in there):
                    marks.append((float(prediction.confidences[index]), False))
    marks.sort(key=lambda mark: -mark[0])
    points = []
    for end in range(1, len(marks) + 1):
        num_true = sum(is_true for _, is_true in marks[:end])
        points.append((num_true / num_objects, num_true / end))
    levels = [max((p for r, p in points if r >= level), default=0.0) for level in np.linspace(0, 1, 101).tolist()]
    return sum(levels) / 101


def plain_shared(a: list[float], b: list[float]) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def plain_iou(a: list[float], b: list[float]) -> float:
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return plain_shared(a, b) / (sum(areas) - plain_shared(a, b))


def plain_share(a: list[float], b: list[float]) -> float:
    return plain_shared(a, b) / ((a[2] - a[0]) * (a[3] - a[1]))
