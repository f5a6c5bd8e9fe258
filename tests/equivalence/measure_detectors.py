"""Print how far accumulated gradients of detectors are from the whole batch's: the tables of docs/accumulation.md.

Run: WHOLEBATCH_DATA=folder/with/pcb python -m tests.equivalence.measure_detectors
Takes some minutes on one core.
"""

from __future__ import annotations

import numpy as np

from pipelines.defect_detection.targets import DEFECT
from pipelines.engine.equivalence import accumulated_gradient, compare, image_weights, whole_batch_gradient
from pipelines.records import MicroBatch, Sample
from tests.equivalence.test_detectors import NETWORKS, NUM_SAMPLES, ok_views, task_of, views
from tests.factories import LAYOUTS, split

NUM_WITH_DEFECT, SIDE_PX = 6, 96


def mostly_clean(seed: int = 0) -> list[Sample]:
    """32 views, 26 of them (81 %) of boards without a defect, in a seeded order."""
    samples = [*views(SIDE_PX)[:NUM_WITH_DEFECT], *ok_views(NUM_SAMPLES - NUM_WITH_DEFECT, SIDE_PX)]
    return [samples[i] for i in np.random.default_rng(seed).permutation(NUM_SAMPLES)]


def print_row(name: str, title: str, samples: list[Sample]) -> None:
    window, whole = split(samples, LAYOUTS["16x2"]), [MicroBatch.of(samples)]
    reference = whole_batch_gradient(task_of(name, "float64"), whole)
    exact = compare(accumulated_gradient(task_of(name, "float64"), window, "exact")[0], reference)
    mean = compare(accumulated_gradient(task_of(name, "float64"), window, "mean")[0], reference)
    task = task_of(name, "float32")
    single, _ = accumulated_gradient(task, window, "exact")
    same, batch = (
        compare(single, whole_batch_gradient(task, window)),
        compare(single, whole_batch_gradient(task, whole)),
    )
    print(
        f"| {name} | {title} | {mean.relative_error:.3f} | {mean.cosine:.4f} | {mean.norm_ratio:.3f}"
        f" | {exact.max_relative_error:.1e} | {same.max_relative_error:.1e} | {batch.relative_error:.1e} |",
        flush=True,
    )


def print_weights(name: str, samples: list[Sample]) -> None:
    """What `mean` makes of an image's gradient: with a defect, clean beside a defect, clean in a clean micro-batch."""
    window = split(samples, LAYOUTS["16x2"])
    weights = np.array(image_weights(task_of(name, "float64"), window, "mean"))
    defects = np.array([(sample.targets["kinds"] == DEFECT).any() for sample in samples])
    beside = defects.reshape(-1, 2).any(axis=1).repeat(2)
    groups = (defects, ~defects & beside, ~defects & ~beside)
    means = " | ".join(f"{weights[group].mean():.2f}" if group.any() else "-" for group in groups)
    print(f"| {name} | {means} |", flush=True)


def main() -> None:
    clean = mostly_clean()
    for name in NETWORKS:
        print_row(name, "with defects", views(SIDE_PX))
        print_row(name, "81 % clean", clean)
        print_weights(name, clean)


if __name__ == "__main__":
    main()
