"""The before/after picture of the README: `python tools/before_after.py runs/smoke docs/images/before_after.png`.

Each side is at the setting tuned for its weights on training images.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pipelines.report import ChangedImage, Findings, draw_findings, window_of_change
from pipelines.report.pictures import MISSED, RIGHT, WRONG, Window
from pipelines.runs.report import changed_images, read_run
from pipelines.terminal import Terminal

_GAP_PX, _MARGIN_PX, _HEAD_PX, _FOOT_PX = 16, 6, 40, 36
_NUM_COLOURS = 250  # few enough for a README, enough to keep the outlines apart
_FONT = ImageFont.load_default(15)
_LEGEND = ((RIGHT, "fits its label"), (WRONG, "fits none"), (MISSED, "label without a fitting box"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="run folder whose training beat its baseline")
    parser.add_argument("out", type=Path, help="PNG to write")
    arguments = parser.parse_args()
    wiring, result = read_run(arguments.run)
    update = result.metrics["best"]["update"]
    if not update:
        raise SystemExit(f"{arguments.run}: training did not beat the baseline there, so there is no after to show")
    most_changed = changed_images(arguments.run, wiring, result, Terminal())[0]
    network = wiring.description()["network"]
    untouched = f"{network} untouched" + (", setting tuned" if result.was_tuned else "")
    picture = side_by_side(most_changed, untouched, f"fine-tuned for {update} updates")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(_NUM_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        arguments.out, optimize=True
    )


def side_by_side(changed: ChangedImage, name_before: str, name_after: str) -> Image.Image:
    window = _busiest_strip(changed)
    width, height = _drawn(changed, changed.before, window).size
    picture = Image.new("RGB", (2 * width + _GAP_PX, _HEAD_PX + height + _FOOT_PX), "white")
    draw = ImageDraw.Draw(picture)
    sides = ((0, name_before, changed.before), (width + _GAP_PX, name_after, changed.after))
    for left, name, findings in sides:
        picture.paste(_drawn(changed, findings, window), (left, _HEAD_PX))
        found = f"{int(findings.is_found.sum())} of {len(findings.is_found)} {changed.noun}"
        draw.text((left + _MARGIN_PX, 10), f"{name}: {found}", "black", _FONT)
    left, top = _MARGIN_PX, _HEAD_PX + height + 9
    for colour, text in _LEGEND:
        draw.rectangle((left, top + 2, left + 14, top + 16), outline=colour, width=2)
        draw.text((left + 22, top), text, "black", _FONT)
        left += round(draw.textlength(text, _FONT)) + 50
    return picture


def _busiest_strip(changed: ChangedImage) -> Window:
    """The part of the window, three fifths as high as wide, in which most labels changed."""
    left, top, right, bottom = window_of_change(changed)
    height = min(bottom - top, round(0.6 * (right - left)))
    middles = np.array([points[:, 1].mean() for points in changed.labels_px])[changed.differs]
    tops = np.arange(top, bottom - height + 1)
    held = ((middles >= tops[:, None]) & (middles <= tops[:, None] + height)).sum(axis=1)
    best = int(tops[np.flatnonzero(held == held.max()).mean().astype(int)])
    return left, best, right, best + height


def _drawn(changed: ChangedImage, findings: Findings, window: Window) -> Image.Image:
    return Image.open(io.BytesIO(draw_findings(changed, findings, window)))


if __name__ == "__main__":
    main()
