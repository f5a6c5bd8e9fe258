"""Decoded images that are kept for a while: the tiles of a photograph, the crops of a page, come again and again."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np

from pipelines.dataset import read_image

DEFAULT_BYTES = 512 * 2**20
"""Decoded images kept by all loader workers together."""


class ImageCache:
    """`read_image` that remembers the images last asked for, as many as fit; callable like it.

    What it returns is shared and can't be written to. A copy made by pickle starts empty.

    Args:
        max_bytes: of decoded pixels; 0 remembers nothing.
    """

    def __init__(self, max_bytes: int = DEFAULT_BYTES):
        self._max_bytes, self._num_bytes = max_bytes, 0
        self._kept: OrderedDict[tuple[Path, int], np.ndarray] = OrderedDict()

    def __call__(self, file: Path, reduction: int) -> np.ndarray:
        """The decoded image, uint8 (height, width, 3), BGR; see `read_image` for both arguments and for Raises."""
        key = (file, reduction)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        image = read_image(file, reduction)
        image.setflags(write=False)
        self._kept[key] = image
        self._num_bytes += image.nbytes
        while self._num_bytes > self._max_bytes:
            self._num_bytes -= self._kept.popitem(last=False)[1].nbytes
        return image

    def __reduce__(self) -> tuple[type[ImageCache], tuple[int]]:
        return ImageCache, (self._max_bytes,)
