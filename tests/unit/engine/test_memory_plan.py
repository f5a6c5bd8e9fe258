"""The plan's arithmetic: constant and slope, what fits, and when a measured peak changes it."""

from __future__ import annotations

import pytest

from pipelines.engine.memory_plan import EvaluationPlan, Measurement, MemoryModel, MemoryPlan

MIB = 2**20
HW = (1024, 1024)


def model(per_pixel: float = 100.0, constant: float = 10 * MIB) -> MemoryModel:
    """100 bytes a pixel for one image, 180 for two, 340 for four: 100 MiB, 180 MiB, 340 MiB at 1024 px square."""
    return MemoryModel(constant, {1: per_pixel, 2: 1.8 * per_pixel, 4: 3.4 * per_pixel})


def plan(budget_mib: float, recomputed: MemoryModel | None = None, most: int = 32) -> MemoryPlan:
    return MemoryPlan(round(budget_mib * MIB), 50 * MIB, model(), recomputed, most)


def test_the_model_goes_through_what_was_measured() -> None:
    true = model()
    shapes = [(1, (256, 256)), (1, (448, 448)), (2, (448, 448)), (4, (448, 448))]
    fitted = MemoryModel.fitted([Measurement(n, hw, round(true.taken_bytes(n, hw))) for n, hw in shapes])
    for number, size_hw in [(1, HW), (2, HW), (4, HW), (1, (320, 1600)), (2, (64, 64))]:
        assert fitted.taken_bytes(number, size_hw) == pytest.approx(true.taken_bytes(number, size_hw), rel=1e-4)


def test_between_and_beyond_the_measured_numbers_the_slope_is_straight() -> None:
    slopes = [model().taken_bytes(number, HW) / MIB - 10 for number in (1, 2, 3, 4, 5, 8)]
    assert slopes == pytest.approx([100, 180, 260, 340, 420, 660])
    alone = MemoryModel(0.0, {1: 100.0})
    assert alone.taken_bytes(3, HW) / MIB == pytest.approx(300)


def test_one_shape_alone_is_no_model() -> None:
    with pytest.raises(ValueError, match="two shapes"):
        MemoryModel.fitted([Measurement(1, HW, 1), Measurement(2, HW, 2)])


def test_the_largest_number_that_fits_with_what_rests_and_the_margin() -> None:
    # 50 rest, 10 constant; two images 180: 240 of .97 x 248 = 240.6
    assert plan(248).fit(HW).number == 2 and plan(247).fit(HW).number == 1
    assert plan(248).fit(HW).peak_bytes == 240 * MIB
    assert plan(10_000, most=5).fit(HW).number == 5


def test_recomputation_is_planned_only_where_one_image_does_not_fit_otherwise() -> None:
    frugal = model(40.0)
    fit = plan(130, frugal).fit(HW)
    assert (fit.number, fit.is_recomputed, fit.peak_bytes) == (1, True, 100 * MIB)
    assert not plan(170, frugal).fit(HW).is_recomputed
    assert plan(130).fit(HW).number == 0 and plan(130).size(HW) == 1
    assert plan(99, frugal).fit(HW).number == 0


def test_the_largest_side_is_a_multiple_of_32_that_fits_and_the_next_does_not() -> None:
    side = plan(130).largest_side()
    assert side % 32 == 0
    assert plan(130).fit((side, side)).number == 1 and plan(130).fit((side + 32, side + 32)).number == 0
    # 126.1 - 60 = 66.1 MiB at 100 bytes: 693,000 pixels, 832 squared
    assert side == 832
    assert plan(40).largest_side() == 0


def test_a_peak_within_a_tenth_changes_nothing_and_one_beyond_is_planned_from_then_on() -> None:
    ours = plan(300)
    shapes = [(1, 64, 64), (2, *HW)]
    assert not ours.corrected(shapes, 262 * MIB)  # planned 240
    assert ours.corrected(shapes, 300 * MIB)
    assert ours.peak_bytes(2, HW) == pytest.approx(300 * MIB) and ours.fit(HW).number == 1
    assert ours.corrected(shapes, 200 * MIB)
    assert ours.peak_bytes(2, HW) == pytest.approx(200 * MIB)


def test_a_peak_of_a_recomputed_shape_corrects_the_recomputed_model_alone() -> None:
    ours = plan(130, model(40.0))
    assert ours.recomputes(HW) and not ours.recomputes((512, 512))
    assert ours.corrected([(1, *HW)], 120 * MIB)  # planned 100
    assert ours.peak_bytes(1, HW) == pytest.approx(120 * MIB)
    assert ours.peak_bytes(1, (512, 512)) == 85 * MIB


def test_evaluation_has_a_plan_of_its_own() -> None:
    evaluation = EvaluationPlan(50 * MIB, MemoryModel(0.0, {1: 50.0}))
    assert evaluation.peak_bytes(HW) == 100 * MIB
    side = evaluation.largest_side(200 * MIB)
    assert evaluation.peak_bytes((side, side)) <= 0.97 * 200 * MIB < evaluation.peak_bytes((side + 32, side + 32))
