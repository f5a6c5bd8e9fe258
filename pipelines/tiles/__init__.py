"""Tiles of large images: where they lie, which boxes they show, and one prediction from many. Numpy only."""

from pipelines.tiles.grid import Window, tile_grid, training_tiles
from pipelines.tiles.merge import MergeRule, merge_tiles
from pipelines.tiles.view import view_boxes

__all__ = ["MergeRule", "Window", "merge_tiles", "tile_grid", "training_tiles", "view_boxes"]
