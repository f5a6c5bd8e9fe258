"""Which images are pages of one document, as `pages` notes it beside them: pages of one document look alike."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from pipelines.records import Fault

PAGES_NAME = "pages.jsonl"
_PAGE_NUMBER = re.compile(r"_p\d+$")


def page_groups(label: Path) -> tuple[Mapping[Path, str], list[Fault]]:
    """By resolved image file, the document that it is a page of; beside a label file, or one folder up.

    Nothing where there is no `pages.jsonl`, or where all pages are of one document: they are split, and this is told.
    """
    file = next((folder / PAGES_NAME for folder in label.parents[:2] if (folder / PAGES_NAME).is_file()), None)
    if file is None:
        return {}, []
    try:
        entries = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
        images = [str(entry["image"]) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"can't be read ({error}): pages of one document may train and validate at once"
        return {}, [Fault(str(file), reason, "warning")]
    groups = {(file.parent / image).resolve(): _PAGE_NUMBER.sub("", Path(image).stem) for image in images}
    if len(set(groups.values())) > 1 or len(groups) < 2:
        return groups, []
    reason = "all pages are of one document: some of them train and others, which look alike, validate"
    return {}, [Fault(str(file), reason, "warning")]
