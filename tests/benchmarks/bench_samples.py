"""CPU time to make a training sample of 640 x 640: PaddleOCR's own operators against ours, on the same receipts.

    wholebatch prepare text --from sroie SRC --out datasets/receipts
    OMP_NUM_THREADS=1 python tests/benchmarks/bench_samples.py datasets/receipts

PaddleOCR 2.10.0 is installed into an environment of its own (--env), once; it needs Python 3.11. Both run in one
process with one thread each, first one, then the other, on the same images, as many rounds. PaddleOCR normalises in the
worker, we do on the device; that is timed too and counted as ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout that is not installed

from pipelines.batching.looking import decode_reduction, look_at
from pipelines.batching.order import sample_rng
from pipelines.batching.shapes import ShapeChoice
from pipelines.batching.text import TextAugmentation
from pipelines.dataset import SPLITS, format_label_line, load_split, read_image
from pipelines.records import Record
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.targets import TextTargets

CHILD = Path(__file__).with_name("paddleocr_samples.py")
PACKAGES = (
    *("numpy<2", "opencv-python-headless<4.12", "albumentations==1.4.10", "albucore==0.0.12", "paddlepaddle==3.2.2"),
    *("shapely", "pyclipper", "scikit-image", "lmdb", "rapidfuzz", "requests", "python-docx", "beautifulsoup4"),
    *("tqdm", "pyyaml"),
)
SMALL_PX, LARGE_PX = 2000, 4000
NUM_SMALL, ROUNDS = 40, 3
CROP = (640, 640)
AIMS = {"under 2000 px": 3.0, "600 dpi": 6.0}


def main() -> None:
    """Print medians an image, step by step, and the ratio of each group."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--env", type=Path, default=Path.home() / ".cache" / "wholebatch" / "paddleocr-2.10.0")
    parser.add_argument("--side", type=int, default=960, help="longest side at which evaluation sees a page")
    arguments = parser.parse_args()
    groups = grouped(arguments.dataset)
    theirs = of_paddleocr(arguments.dataset, groups, installed(arguments.env))
    cv2.setNumThreads(1)
    for name, records in groups.items():
        ours = of_wholebatch(arguments.dataset, records, arguments.side)
        total_theirs, total_ours = (float(np.median(steps["all"])) for steps in (theirs[name], ours))
        print(f"{name}, {len(records)} images x {ROUNDS} rounds, medians in ms of CPU")
        for who, steps in (("PaddleOCR", theirs[name]), ("wholebatch", ours)):
            print(f"  {who}: " + ", ".join(f"{step} {np.median(times):.1f}" for step, times in steps.items()))
        print(f"  ratio {total_theirs / total_ours:.1f} (aim {AIMS[name]:g})")


def grouped(root: Path) -> dict[str, list[Record]]:
    """Small receipts and 600-dpi pages that hold text."""
    records = [record for split in SPLITS for record in load_split(root, split)]
    small = [record for record in records if max(record.size_hw) < SMALL_PX][:NUM_SMALL]
    return {"under 2000 px": small, "600 dpi": [record for record in records if max(record.size_hw) > LARGE_PX]}


def installed(env: Path) -> Path:
    """The Python of PaddleOCR's environment, made if it is not there."""
    python = env / "bin" / "python"
    if not python.exists():
        print(f"installing PaddleOCR 2.10.0 into {env}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-deps", "paddleocr==2.10.0"], check=True)
    return python


def of_paddleocr(root: Path, groups: dict[str, list[Record]], python: Path) -> dict[str, dict[str, list[float]]]:
    """Milliseconds by group and operator."""
    images = {
        name: [(str(root / record.path), format_label_line(record).partition("\t")[2]) for record in records]
        for name, records in groups.items()
    }
    package = next(python.parent.parent.glob("lib/python*/site-packages/paddleocr"))
    with tempfile.TemporaryDirectory() as folder:
        job, result = Path(folder) / "job.json", Path(folder) / "result.json"
        job.write_text(json.dumps({"groups": images, "rounds": ROUNDS}), encoding="utf-8")
        environment = {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1", "NO_ALBUMENTATIONS_UPDATE": "1"}
        subprocess.run([str(python), str(CHILD), str(job), str(result)], check=True, env=environment)
        found = json.loads(result.read_text(encoding="utf-8"))
    return {name: by_step(found["names"], rows) for name, rows in found["seconds"].items()}


def by_step(names: list[str], rows: list[list[float]]) -> dict[str, list[float]]:
    milliseconds = np.array(rows) * 1000
    steps = {name: milliseconds[:, column].tolist() for column, name in enumerate(names)}
    return {**steps, "all": milliseconds.sum(axis=1).tolist()}


def of_wholebatch(root: Path, records: list[Record], side: int) -> dict[str, list[float]]:
    augmentation, targets = TextAugmentation(ResizeRule(side).size_hw), TextTargets()
    rows = []
    for number in range(ROUNDS):
        for index, record in enumerate(records):
            rows.append(timed(root, record, augmentation, targets, number * len(records) + index))
    return by_step(["decode", "warp, colour, regions", "maps", "normalise"], rows)


def timed(root: Path, record: Record, augmentation: TextAugmentation, targets: TextTargets, index: int) -> list[float]:
    """Seconds of each step; decoding is timed by itself and taken off the step that holds it."""
    import paddle

    from pipelines.text_detection.network import normalise

    asked = []

    def look(matrix: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
        asked.append(matrix)
        return look_at(root / record.path, record.size_hw, matrix, size_hw)

    times = [time.process_time()]
    image, regions = augmentation.apply(look, record, ShapeChoice(CROP), sample_rng(0, 0, index))
    times.append(time.process_time())
    sample = targets(image, regions, record.path)
    times.append(time.process_time())
    normalise(paddle.to_tensor(sample.image[None]))
    times.append(time.process_time())
    decode = min(_seconds(partial(read_image, root / record.path, decode_reduction(asked[0], CROP))) for _ in range(2))
    apply, maps, norm = np.diff(times).tolist()
    decode = min(decode, apply)
    return [decode, apply - decode, maps, norm]


def _seconds(call: partial[np.ndarray]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


if __name__ == "__main__":
    main()
