"""How much memory a micro-batch of any shape will take, from a few that were measured.

A convolutional network keeps so many bytes a pixel, so at a given number of images the peak is a constant and a slope
over pixels; over the number of images the slope is measured at a few and straight in between. What rests between
updates (weights, moments, averages) and the window's sum of gradients come on top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

ShapeHW = tuple[int, int]
MEASURED_NUMBERS = (1, 2, 4)
"""Images of the micro-batches that are measured; the slope goes on beyond the last as between the last two."""
MARGIN = 0.97
"""Of a budget, what is planned for: the worst plan against measurement was 2 % off."""
TOLERANCE = 0.1
"""A measured peak that is farther off than this calls for a new plan."""
_STRIDE_PX = 32


@dataclass(frozen=True)
class Measurement:
    """What one forward and backward took.

    Attributes:
        number: of images.
        size_hw: of each.
        taken_bytes: peak above what was held before.
    """

    number: int
    size_hw: ShapeHW
    taken_bytes: int

    @property
    def pixels(self) -> int:
        return self.size_hw[0] * self.size_hw[1]


@dataclass(frozen=True)
class MemoryModel:
    """Bytes that a micro-batch takes above what rests.

    Attributes:
        constant: whatever the shape.
        per_pixel: by number of images, for each pixel of one of them.
    """

    constant: float
    per_pixel: Mapping[int, float]

    @classmethod
    def fitted(cls, measurements: Sequence[Measurement]) -> MemoryModel:
        """From one measurement a number of images, and a second shape for the smallest number.

        Raises:
            ValueError: no number of images has two shapes.
        """
        by_number: dict[int, list[Measurement]] = {}
        for measurement in measurements:
            by_number.setdefault(measurement.number, []).append(measurement)
        pairs = [sorted(of_number, key=lambda one: one.pixels) for of_number in by_number.values()]
        pair = next((of_number for of_number in pairs if of_number[0].pixels < of_number[-1].pixels), None)
        if pair is None:
            raise ValueError("the memory of two shapes must be measured at one number of images")
        small, large = pair[0], pair[-1]
        slope = (large.taken_bytes - small.taken_bytes) / (large.pixels - small.pixels)
        constant = small.taken_bytes - slope * small.pixels
        largest = {number: max(found, key=lambda one: one.pixels) for number, found in by_number.items()}
        return cls(constant, {number: (one.taken_bytes - constant) / one.pixels for number, one in largest.items()})

    def taken_bytes(self, number: int, size_hw: ShapeHW) -> float:
        """Of a micro-batch of `number` images of this shape."""
        return self.constant + self._slope(number) * size_hw[0] * size_hw[1]

    def scaled(self, factor: float) -> MemoryModel:
        """With every byte a pixel times `factor`."""
        return replace(self, per_pixel={number: slope * factor for number, slope in self.per_pixel.items()})

    def _slope(self, number: int) -> float:
        known = sorted(self.per_pixel)
        if number in self.per_pixel or len(known) == 1:
            return self.per_pixel.get(number, self.per_pixel[known[0]] * number / known[0])
        upper = next((k for k in known if k > number), known[-1])
        lower = known[max(known.index(upper) - 1, 0)]
        rise = (self.per_pixel[upper] - self.per_pixel[lower]) / (upper - lower)
        return self.per_pixel[lower] + rise * (number - lower)


@dataclass(frozen=True)
class Fit:
    """What fits of one shape.

    Attributes:
        number: images in a micro-batch; 0 if not even one fits.
        is_recomputed: only with recomputed activations.
        peak_bytes: in all, of that micro-batch, or of one image where none fits.
    """

    number: int
    is_recomputed: bool
    peak_bytes: int


@dataclass
class MemoryPlan:
    """Micro-batches for a budget.

    Attributes:
        budget_bytes: of tensors, in all.
        resting_bytes: weights, moments, averages and the window's sum of gradients.
        model: of a forward with its backward.
        recomputed: the same with recomputed activations; None where that is ruled out.
        most: images in a micro-batch, whatever fits.
    """

    budget_bytes: int
    resting_bytes: int
    model: MemoryModel
    recomputed: MemoryModel | None
    most: int

    def fit(self, size_hw: ShapeHW) -> Fit:
        """What fits of a shape."""
        is_recomputed = self.recomputes(size_hw)
        number = self._number(self._model(is_recomputed), size_hw)
        return Fit(number, is_recomputed, self.peak_bytes(max(number, 1), size_hw))

    def recomputes(self, size_hw: ShapeHW) -> bool:
        """Whether activations of this shape are to be computed twice: not even one image fits otherwise."""
        return self.recomputed is not None and self._number(self.model, size_hw) == 0

    def size(self, size_hw: ShapeHW) -> int:
        """Images in a micro-batch of this shape, at least 1: that one does not fit shows when it is tried."""
        return max(1, self.fit(size_hw).number)

    def peak_bytes(self, number: int, size_hw: ShapeHW) -> int:
        """In all, of a micro-batch, as it is planned for its shape."""
        return round(self.resting_bytes + self._model(self.recomputes(size_hw)).taken_bytes(number, size_hw))

    def planned_bytes(self, shapes: Sequence[tuple[int, int, int]]) -> int:
        """The peak of an update whose micro-batches are (number, height, width)."""
        return max(self._peak_of(shape) for shape in shapes)

    def largest_side(self) -> int:
        """Of a square of which one image fits, recomputed if that is allowed; a multiple of 32 px, 0 if none does."""
        return _largest_side(lambda side: self.fit((side, side)).number > 0)

    def corrected(self, shapes: Sequence[tuple[int, int, int]], measured_bytes: int) -> bool:
        """Take a measured peak into account, if it is farther from the planned one than `TOLERANCE`.

        Args:
            shapes: (number, height, width) of the micro-batches that ran.
            measured_bytes: the peak in all.
        """
        number, height, width = max(shapes, key=self._peak_of)
        planned, is_recomputed = self._peak_of((number, height, width)), self.recomputes((height, width))
        if abs(measured_bytes - planned) <= TOLERANCE * planned:
            return False
        rest = self.resting_bytes + self._model(is_recomputed).constant
        factor = max(measured_bytes - rest, 1) / (planned - rest)
        if is_recomputed and self.recomputed is not None:
            self.recomputed = self.recomputed.scaled(factor)
        else:
            self.model = self.model.scaled(factor)
        return True

    def _peak_of(self, shape: tuple[int, int, int]) -> int:
        return self.peak_bytes(shape[0], shape[1:])

    def _model(self, is_recomputed: bool) -> MemoryModel:
        return self.recomputed if is_recomputed and self.recomputed is not None else self.model

    def _number(self, model: MemoryModel, size_hw: ShapeHW) -> int:
        room = MARGIN * self.budget_bytes - self.resting_bytes
        return max((n for n in range(1, self.most + 1) if model.taken_bytes(n, size_hw) <= room), default=0)


@dataclass(frozen=True)
class EvaluationPlan:
    """Memory of one image in evaluation: a constant and so many bytes a pixel above the resting weights."""

    resting_bytes: int
    model: MemoryModel

    def peak_bytes(self, size_hw: ShapeHW) -> int:
        return round(self.resting_bytes + self.model.taken_bytes(1, size_hw))

    def largest_side(self, budget_bytes: int) -> int:
        """Of a square that fits, a multiple of 32 px; 0 if none does."""
        return _largest_side(lambda side: self.peak_bytes((side, side)) <= MARGIN * budget_bytes)


def _largest_side(fits: Callable[[int], bool]) -> int:
    sides = range(_STRIDE_PX, 16_384 + 1, _STRIDE_PX)
    return max((side for side in sides if fits(side)), default=0)
