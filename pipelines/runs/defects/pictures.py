"""How defects that a model found are shown: boxes with class and confidence, plain values, and which ones are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw

from pipelines.evaluation.box_matching import match_image
from pipelines.evaluation.defects import IOU_THRESHOLD
from pipelines.geometry import box_areas
from pipelines.records import DefectAnnotation, DefectPrediction, Record
from pipelines.report import ChangedImage, Findings
from pipelines.runs.defects.captions import Captions, captions_of
from pipelines.synthesis.fonts import load_font

# Okabe and Ito's colours, BGR: told apart by the colour-blind too
_COLOURS_BGR = ((0, 94, 213), (178, 114, 0), (115, 158, 0), (167, 121, 204), (0, 159, 230), (233, 180, 86))
_DEFECTS_SHOWN = 16  # a window is so many defects wide: what it shows can still be made out


@dataclass(frozen=True)
class DefectPresentation:
    """The `Presentation` of defects.

    Attributes:
        class_names: by class id.
        confidence: what is found with less is left out, 0 to 1.
    """

    class_names: tuple[str, ...]
    confidence: float
    key = "defects"

    @cached_property
    def captions(self) -> Captions:
        return captions_of(self.class_names)

    @property
    def note(self) -> str:
        return self.captions.note

    def confident(self, prediction: DefectPrediction) -> DefectPrediction:
        return at_least(prediction, self.confidence)

    def draw(self, image: np.ndarray, prediction: DefectPrediction) -> np.ndarray:
        """A copy of the image with each box in the colour of its class, lines and letters as large as it asks for."""
        drawn = image.copy()
        longest = max(image.shape[:2])
        width, letters_px = max(1, round(longest / 400)), max(12, round(longest / 60))
        # the most confident last, on top
        for i in np.argsort(prediction.confidences, kind="stable").tolist():
            class_id = int(prediction.class_ids[i])
            colour = _COLOURS_BGR[class_id % len(_COLOURS_BGR)]
            left, top, right, bottom = np.round(prediction.boxes_xyxy_px[i]).astype(int).tolist()
            cv2.rectangle(drawn, (left, top), (right, bottom), colour, width, cv2.LINE_AA)
            text = f"{self.captions.names[class_id]} {prediction.confidences[i]:.2f}"
            _paste(drawn, self._sign(text, letters_px, colour), left, top)
        return drawn

    def as_json(self, prediction: DefectPrediction) -> list[dict[str, Any]]:
        """Class, confidence and box, [left, top, right, bottom] in source pixels, of each defect."""
        found = zip(prediction.class_ids, prediction.confidences, prediction.boxes_xyxy_px, strict=True)
        return [
            {
                "class": self.class_names[class_id],
                "confidence": round(float(confidence), 4),
                "box": [round(value, 1) for value in box.tolist()],
            }
            for class_id, confidence, box in found
        ]

    def summary(self, counts: Sequence[int]) -> str:
        num_found = sum(count > 0 for count in counts)
        has = "has" if num_found == 1 else "have"
        return (
            f"{num_found} of {len(counts)} images {has} a finding, {sum(counts)} defects in all, at confidence"
            f" {self.confidence:.3f} and above"
        )

    def _sign(self, text: str, letters_px: int, colour_bgr: tuple[int, int, int]) -> np.ndarray:
        """White text on the colour, uint8 BGR; by PIL, as OpenCV draws ASCII letters only."""
        font = load_font(self.captions.font, letters_px)
        left, top, right, bottom = font.getbbox(text)
        margin = max(1, letters_px // 8)
        size_wh = (round(right - left) + 2 * margin, round(bottom - top) + 2 * margin)
        sign = Image.new("RGB", size_wh, colour_bgr[::-1])
        ImageDraw.Draw(sign).text((margin - left, margin - top), text, "white", font)
        return np.asarray(sign)[:, :, ::-1]


def at_least(prediction: DefectPrediction, confidence: float) -> DefectPrediction:
    """What of a prediction is as confident as that."""
    is_kept = prediction.confidences >= confidence
    values = (prediction.boxes_xyxy_px, prediction.class_ids, prediction.confidences)
    return DefectPrediction(*(value[is_kept] for value in values))


def findings(
    prediction: DefectPrediction, annotation: DefectAnnotation, confidence: float, names: Sequence[str]
) -> Findings:
    """Which boxes fit which labels of their class, by the rules of the scorer, at a confidence threshold."""
    confident = at_least(prediction, confidence)
    match = match_image(confident, annotation, IOU_THRESHOLD)
    order = np.argsort(-confident.confidences, kind="stable")  # as the match has them
    is_found = np.zeros(len(match.object_class_ids), bool)
    is_found[match.found[match.found >= 0]] = True
    captions = [f"{names[i]} {value:.2f}" for i, value in zip(match.class_ids, match.confidences, strict=True)]
    return Findings(corners_of(confident.boxes_xyxy_px[order]), match.found >= 0, match.is_ignored, is_found, captions)


def changed_image(
    record: Record, image: np.ndarray, before: Findings, after: Findings, captions: Captions
) -> ChangedImage:
    """An image with what two models found in it."""
    annotation: DefectAnnotation = record.annotation
    is_object = ~annotation.is_ignored
    labels = annotation.boxes_xyxy_px[is_object]
    side = float(np.median(np.sqrt(box_areas(labels)))) if len(labels) else 0.0
    return ChangedImage(
        record.path,
        image,
        corners_of(labels),
        corners_of(annotation.boxes_xyxy_px[annotation.is_ignored]),
        before,
        after,
        noun="defects",
        span_px=_DEFECTS_SHOWN * side,
        captions=[captions.names[class_id] for class_id in annotation.class_ids[is_object]],
        font=captions.font,
    )


def corners_of(boxes_xyxy: np.ndarray) -> list[np.ndarray]:
    """The four corners, (4, 2), of each box."""
    return list(boxes_xyxy[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2))


def _paste(image: np.ndarray, sign: np.ndarray, left: int, bottom: int) -> None:
    """Put a sign into the image, its lower left corner there, moved as far as it must to lie inside."""
    height, width = (min(sign.shape[axis], image.shape[axis]) for axis in (0, 1))
    top = min(max(0, bottom - height), image.shape[0] - height)
    left = min(max(0, left), image.shape[1] - width)
    image[top : top + height, left : left + width] = sign[:height, :width]
