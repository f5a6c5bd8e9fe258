"""Detectors that say something, and pictures with defects for them: boards if there are any, else drawn ones."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import paddle

from pipelines.records import DefectAnnotation, Sample
from pipelines.synthesis.factory_images import CLASSES, draw_factory_image
from pipelines.tiles import view_boxes

Targets = Callable[[np.ndarray, DefectAnnotation, str], Sample]


@dataclass(frozen=True, eq=False)
class Picture:
    """An image, uint8 BGR (height, width, 3), with its defects."""

    name: str
    image: np.ndarray
    annotation: DefectAnnotation


def drawn_pictures(num_pictures: int, *, num_defects: int = 3, size_hw: tuple[int, int] = (224, 224)) -> list[Picture]:
    """Seeded factory images with this many defects each, whose class ids are below 4."""
    pictures = []
    for seed in range(num_pictures):
        rng = np.random.default_rng(seed)
        drawn = draw_factory_image(rng, size_hw, rng.integers(0, len(CLASSES), num_defects).tolist())
        pictures.append(Picture(f"drawn_{seed}.png", drawn.image, drawn.annotation))
    return pictures


def board_pictures(folder: Path, num_pictures: int, *, is_ok: bool = False) -> list[Picture]:
    """The first boards of the training list (DeepPCB layout): with their defects, or the same boards without any."""
    pictures = []
    for line in (folder / "train.txt").read_text().splitlines()[:num_pictures]:
        name, label = line.split()
        file = folder / name.replace(".jpg", "_temp.jpg" if is_ok else "_test.jpg")
        rows = np.loadtxt(folder / label, ndmin=2)
        annotation = DefectAnnotation(rows[:, :4], rows[:, 4].astype(int) - 1, np.zeros(len(rows), bool))
        pictures.append(Picture(file.name, cv2.imread(str(file)), DefectAnnotation() if is_ok else annotation))
    return pictures


def defect_views(
    pictures: Sequence[Picture], num_views: int, targets: Targets, *, size_hw: tuple[int, int] = (96, 96), seed: int = 0
) -> list[Sample]:
    """Views round defects (anywhere in a picture that has none) with their targets, round and round the pictures.

    Defects that a view cuts become ignore regions, as in training.
    """
    rng = np.random.default_rng(seed)
    samples = []
    for i in range(num_views):
        picture = pictures[i % len(pictures)]
        limits = np.array(picture.image.shape[1::-1]) - size_hw[::-1]
        boxes = picture.annotation.boxes_xyxy_px
        middle = boxes[rng.integers(len(boxes))].reshape(2, 2).mean(axis=0) if len(boxes) else rng.uniform(0, limits)
        x, y = np.clip(middle - np.array(size_hw[::-1]) * rng.uniform(0.25, 0.75, 2), 0, limits).astype(int).tolist()
        seen = view_boxes(picture.annotation, (x, y, x + size_hw[1], y + size_hw[0]))
        view = np.ascontiguousarray(picture.image[y : y + size_hw[0], x : x + size_hw[1]])
        samples.append(targets(view, seen, f"{picture.name} at {x},{y}"))
    return samples


def blotches(seed: int, size_hw: tuple[int, int]) -> np.ndarray:
    """Noise of coarse and fine grain, uint8 (height, width, 3): images that differ at every scale of a network."""
    rng = np.random.default_rng(seed)
    image = np.zeros((*size_hw, 3))
    for cells in (2, 5, 12, 40):
        grain = rng.normal(0, 40, (cells, cells, 3))
        image += cv2.resize(grain, size_hw[::-1], interpolation=cv2.INTER_CUBIC)
    return np.clip(image + rng.uniform(100, 150, 3), 0, 255).astype(np.uint8)


def enliven(detector: paddle.nn.Layer, images: np.ndarray, *, seed: int = 0) -> None:
    """Make an untrained detector say something else at every point of images like these; leaves it in eval mode.

    As it is built, the signal fades from layer to layer and the head's last convolutions are constants: every point
    says the same, so that ties and vanishing gradients hide mistakes. Here every BatchNorm takes the statistics of
    `images`, uint8 (n, height, width, 3), and the last convolutions are seeded noise that gives logits of about 1.
    """
    norms = [layer for layer in detector.sublayers() if isinstance(layer, paddle.nn.BatchNorm2D)]
    momenta = [norm._momentum for norm in norms]
    for norm in norms:
        norm._momentum = 0.0  # the running statistics become those of the batch
    detector.train()
    with paddle.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # paddle says at every BatchNorm in train mode that it tracks statistics
        detector(paddle.to_tensor(images))
    detector.eval()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm._momentum = momentum
    _randomise_last_convolutions(detector, images, np.random.default_rng(seed))


def _randomise_last_convolutions(detector: paddle.nn.Layer, images: np.ndarray, rng: np.random.Generator) -> None:
    def fill(layer: paddle.nn.Conv2D, inputs: tuple[paddle.Tensor]) -> None:
        spread = 1.0 / float((inputs[0].square().mean() * np.prod(layer.weight.shape[1:])).sqrt())
        layer.weight.set_value(rng.normal(0, spread, layer.weight.shape).astype(np.float32))
        layer.bias.set_value(rng.normal(0, 0.5, layer.bias.shape).astype(np.float32))

    named = dict(detector.head.named_sublayers())
    last = [layer for name, layer in named.items() if re.search(r"^(head|pred)_(cls|reg)(_list)?\.?\d$", name)]
    hooks = [layer.register_forward_pre_hook(fill) for layer in last]
    with paddle.no_grad():
        detector(paddle.to_tensor(images))
    for hook in hooks:
        hook.remove()
