"""At which scale a network sees an image: one rule for training tiles, evaluation and the exported model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScaleRule:
    """Network pixels per image pixel.

    Attributes:
        scale: of every image.
        longest_side_px: if given, every image is scaled to this longest side instead.
    """

    scale: float = 1.0
    longest_side_px: int | None = None

    def __post_init__(self) -> None:
        for value in (self.scale, self.longest_side_px):
            if value is not None and not value > 0:
                raise ValueError(f"a scale and a longest side must be above 0, but got {value}")

    def of(self, size_hw: tuple[int, int]) -> float:
        """For an image of (height, width)."""
        return self.longest_side_px / max(size_hw) if self.longest_side_px else self.scale
