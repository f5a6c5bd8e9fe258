"""Stand-ins for what is slow to make: weights that are blended, and a detector that finds what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import paddle

from pipelines.records import DefectPrediction


class Weights:
    """Stands in for `Blend`, and for the network that it blends: remembers which share is applied."""

    def __init__(self) -> None:
        self.share = 1.0

    @contextmanager
    def applied(self, share: float) -> Iterator[None]:
        self.share, before = share, self.share
        yield
        self.share = before


class Detector:
    """Stands in for a task: what it finds in an image is up to `find`, under class names of its own."""

    def __init__(self, find: Callable[[np.ndarray], DefectPrediction], class_names: Sequence[str] = ()):
        self.network = paddle.nn.Identity()
        self.network.class_names = tuple(class_names)
        self.setting = WholeImages(find)

    def predict(self, images: Sequence[np.ndarray]) -> list[DefectPrediction]:
        return [self.setting.find(image) for image in images]


@dataclass(frozen=True)
class WholeImages:
    """Stands in for a detector's `Setting`: no scale, no tiles."""

    find: Callable[[np.ndarray], DefectPrediction]
    tile_px: int = 640

    def finder(self, network: paddle.nn.Layer) -> Callable[[np.ndarray], DefectPrediction]:
        return self.find

    def detect_with(self, find: Callable[[np.ndarray], DefectPrediction], image: np.ndarray) -> DefectPrediction:
        return find(image)
