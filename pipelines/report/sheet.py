"""A contact sheet: the images of a dataset that are worth a look, with their labels and why; one HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.errors import UsageError
from pipelines.report.page import embedded, filled, write_page
from pipelines.report.pictures import IGNORED, MISSED, RIGHT, WRONG, ChangedImage, Findings, draw_findings

_WIDTH_PX, _HEIGHT_PX = 380, 560  # of a thumbnail, at most: forty of them make some 3 MB
_LEAST_WIDTH_PX = 60
_MARK = "<!-- contact sheet of wholebatch check -->"

_HEAD = f"<!doctype html>\n{_MARK}\n"
_TEMPLATE = """<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}: contact sheet</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1240px; margin: 2rem auto;
         padding: 0 1rem; }
  h1 { font-size: 1.5rem; margin-bottom: .5rem; overflow-wrap: anywhere; }
  h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; border-bottom: 1px solid #ddd; padding-bottom: .2rem; }
  .sheet { display: flex; flex-wrap: wrap; gap: 20px; align-items: flex-start; }
  figure { margin: 0; width: 380px; max-width: 100%; }
  figure img { max-width: 100%; border: 1px solid #ddd; }
  .nothing { padding: 2rem 1rem; background: #f6f6f6; color: #b34700; }
  figcaption { font-size: .9rem; overflow-wrap: anywhere; }
  figcaption .why { color: #b34700; font-weight: 600; }
  .note, .name { color: #555; }
  .key { font-weight: 600; }
  li { overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for sentence in sentences %}
<p>{{ sentence }}</p>
{% endfor %}
{% if faults %}
<h2>Findings</h2>
<ul>
{% for fault in faults %}
  <li>{{ fault }}</li>
{% endfor %}
</ul>
{% endif %}
<h2>Images</h2>
<p class="note"><span class="key" style="color: {{ right }}">green</span>: a label;
<span class="key" style="color: {{ wrong }}">orange</span>: one to look at;
<span class="key" style="color: {{ missed }}">blue, dotted</span>: text without a label, perhaps;
<span class="key" style="color: {{ ignored }}">grey, hatched</span>: an ignore region.
These are your images: mind who gets this page.</p>
<div class="sheet">
{% for image in images %}
<figure>
  {% if image.picture %}
  <img src="{{ image.picture }}" alt="{{ image.name }}">
  {% else %}
  <div class="nothing">no picture</div>
  {% endif %}
  <figcaption>
  {% for reason in image.reasons %}
  <span class="why">{{ reason }}</span><br>
  {% endfor %}
  <span class="name">{% if image.split %}{{ image.split }}: {% endif -%}
  {{ image.name }}; {{ image.labels }}</span></figcaption>
</figure>
{% endfor %}
</div>
</body>
</html>
"""


@dataclass(frozen=True, eq=False)
class SheetImage:
    """One image of the sheet.

    Attributes:
        name: file, as the dataset names it.
        split: "train" or "val".
        image: uint8 (height, width, 3), BGR; None where there is none to show.
        labels_px: float (k, 2) each, pixels of the image.
        ignored_px: the same, ignore regions.
        is_odd: bool (n,), the label is one to look at.
        reasons: why the image is here, in words.
        unlabelled_px: float (k, 2) each, where a label may be missing.
    """

    name: str
    split: str
    image: np.ndarray | None
    labels_px: Sequence[np.ndarray]
    ignored_px: Sequence[np.ndarray]
    is_odd: np.ndarray
    reasons: Sequence[str]
    unlabelled_px: Sequence[np.ndarray] = ()


def write_sheet(
    file: Path, title: str, images: Iterable[SheetImage], sentences: Sequence[str] = (), faults: Sequence[str] = ()
) -> Path:
    """Write the sheet; images are drawn one by one, so that a generator holds one in memory.

    Args:
        file: to write, UTF-8 HTML; an older sheet there is replaced whole or not at all.
        title: of the page.
        images: in the order they are shown.
        sentences: what is to be said before.
        faults: findings that belong to no image, listed.

    Returns:
        `file`.

    Raises:
        UsageError: something other than a sheet is there.
        DataError: the file can't be written.
    """
    refuse_other_file(file)
    page = filled(
        _HEAD + _TEMPLATE,
        title=title,
        sentences=sentences,
        faults=faults,
        images=[_shown(image) for image in images],
        right=RIGHT,
        wrong=WRONG,
        missed=MISSED,
        ignored=IGNORED,
    )
    return write_page(file, page)


def refuse_other_file(file: Path) -> None:
    """Nothing that a user made is overwritten.

    Raises:
        UsageError: something other than a sheet is there.
    """
    if file.exists() and not (file.is_file() and _MARK.encode() in file.read_bytes()[:200]):
        raise UsageError(f"{file}: exists and is no contact sheet; name another file")


def _shown(image: SheetImage) -> dict[str, object]:
    number, ignored = len(image.labels_px), len(image.ignored_px)
    labels = f"{number} label" + "s" * (number != 1)
    return {
        "name": image.name,
        "split": image.split,
        "reasons": image.reasons,
        "labels": labels + f", {ignored} ignored" * bool(ignored),
        "picture": "" if image.image is None else embedded(_drawn(image, image.image), "jpeg"),
    }


def _drawn(image: SheetImage, pixels: np.ndarray) -> bytes:
    """JPEG thumbnail: labels as boxes that fit or, where odd, that don't; unlabelled places as labels without a box."""
    height, width = pixels.shape[:2]
    missing = np.zeros(len(image.unlabelled_px), bool)
    labels = Findings(image.labels_px, ~image.is_odd, np.zeros(len(image.labels_px), bool), missing)
    page = ChangedImage(image.name, pixels, image.unlabelled_px, image.ignored_px, labels, labels)
    shown_px = max(_LEAST_WIDTH_PX, min(_WIDTH_PX, _HEIGHT_PX * width // height))
    return draw_findings(page, labels, (0, 0, width, height), shown_px)
