"""How many simulated second scans of a dataset's images `check` finds, and how many pairs it names wrongly.

python tests/benchmarks/bench_near_duplicates.py datasets/receipts datasets/pcb datasets/ballscrew
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout that is not installed

from pipelines.dataset import read_image
from pipelines.prep.check import labelled_images
from pipelines.prep.near_duplicates import look_at, near_duplicates


def moved(grey: np.ndarray, degrees: float = 0.0, share: float = 0.0, scale: float = 1.0) -> np.ndarray:
    height, width = grey.shape
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, scale)
    matrix[:, 2] += share * width, share * height
    return cv2.warpAffine(grey, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)


def saved_again(grey: np.ndarray, quality: int) -> np.ndarray:
    return cv2.imdecode(cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_GRAYSCALE)


def cropped(grey: np.ndarray) -> np.ndarray:
    height, width = grey.shape
    return grey[height // 50 : height - height // 50, width // 50 : width - width // 50]


def second_scan(grey: np.ndarray) -> np.ndarray:
    blurred = cv2.GaussianBlur(moved(grey, -0.5, scale=1.01), (0, 0), 1.0)
    noise = np.random.default_rng(grey.size).normal(0, 6, grey.shape)
    return np.clip(blurred * 0.85 + 20 + noise, 0, 255).astype(np.uint8)


VARIANTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "JPEG of quality 50": lambda grey: saved_again(grey, 50),
    "0.6 of the size": lambda grey: cv2.resize(grey, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA),
    "darker": lambda grey: (grey * 0.7 + 10).astype(np.uint8),
    "turned by 1 degree": lambda grey: moved(grey, 1.0),
    "moved by 1 %": lambda grey: moved(grey, share=0.01),
    "2 % cut off all round": cropped,
    "second scan: turned, blurred, duller, noisy": second_scan,
}


def measure(root: Path, most: int, work: Path) -> None:
    """Print a line a variant: every image trains, and its variant validates."""
    images = labelled_images(root)
    chosen = images[:: max(1, -(-len(images) // most))]
    greys = {}
    for number, (_, record) in enumerate(chosen):
        reduction = 4 if max(record.size_hw) > 4000 else 1
        greys[f"{number}.png"] = cv2.cvtColor(read_image(root / record.path, reduction), cv2.COLOR_BGR2GRAY)
    for name, variant in VARIANTS.items():
        start = time.perf_counter()
        looks = [
            {place: look_of_written(work, place, change(grey)) for place, grey in of_split.items()}
            for of_split, change in (
                ({f"train_{place}": grey for place, grey in greys.items()}, lambda grey: grey),
                ({f"val_{place}": grey for place, grey in greys.items()}, variant),
            )
        ]
        with ThreadPoolExecutor() as executor:
            found, _ = near_duplicates(work, *looks, executor)
        right = sum(pair.train.split("_")[1] == pair.val.split("_")[1] for pair in found)
        seconds = time.perf_counter() - start
        print(f"{root.name} | {name} | {right} of {len(greys)} | {len(found) - right} wrong | {seconds:.1f} s")


def look_of_written(work: Path, place: str, grey: np.ndarray):
    (work / place).write_bytes(cv2.imencode(".png", grey, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1].tobytes())
    return look_at(work / place, grey.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=70, help="images of each dataset")
    arguments = parser.parse_args()
    for root in arguments.datasets:
        with tempfile.TemporaryDirectory() as work:
            measure(root, arguments.most, Path(work))


if __name__ == "__main__":
    main()
