"""Classes by name: spellings that mean one class are joined, a chosen list fixes selection and order.

| found | action |
|---|---|
| names that differ in case or blanks alone | one class, under the chosen or the most frequent spelling; told |
| `Crowd`, `__ignore__` | no class: such boxes are ignore regions |
| a name that is not in --classes, near one that is | the box is dropped as a fault, with a suggestion |
| a name that is not in --classes, near none | the box is left out on purpose; told once a class |
| a name in --classes that nothing bears, near one that is borne | refused, with a suggestion |
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.dataset.encodings import HALF_CHARACTER
from pipelines.errors import UsageError
from pipelines.prep.raw import RawBox, RawDefects
from pipelines.records import Fault

_IGNORE_KEYS = frozenset({"crowd", "__ignore__"})
"""COCO's crowds as class names, and LabelMe's mark in its own converters."""


@dataclass(frozen=True)
class Meaning:
    """What a class name as written means.

    Attributes:
        class_id: position in the dataset's list; 0 for an ignore region without a class; -1: no class of it.
        is_ignored: it marks an ignore region.
        fault: why a box of this name can't be used, "" where it is left out on purpose.
    """

    class_id: int
    is_ignored: bool = False
    fault: str = ""


@dataclass(frozen=True)
class ClassNames:
    """The classes of a dataset in order, and the meaning of every name as its source writes it."""

    names: tuple[str, ...]
    meanings: Mapping[str, Meaning]


def class_names(
    raws: Sequence[RawDefects], listed: Sequence[str], chosen: Sequence[str] | None
) -> tuple[ClassNames, list[Fault]]:
    """The classes of all boxes.

    Args:
        raws: the images.
        listed: names in the source's own order; may be empty.
        chosen: the user's selection in order, or None for all classes.

    Raises:
        UsageError: `chosen` has a blank name, one name twice, or one that looks like a slip of the pen.
    """
    spellings = Counter(box.class_name for raw in raws for box in raw.regions if _is_name(box.class_name))
    listed = [name for name in listed if _is_name(name)]
    best = _best_spellings(spellings, listed, chosen)
    names = tuple(best[key] for key in _ordered(best, listed, chosen))
    meanings = {spelling: _meaning(spelling, names, chosen is not None) for spelling in spellings}
    faults = [*_unused(names, spellings, chosen), *_told(raws, names, meanings, spellings)]
    return ClassNames(names, meanings), faults


def is_ignore_class(name: str) -> bool:
    """Whether a class name says that its objects are ignore regions."""
    return _key(name) in _IGNORE_KEYS


def _is_name(name: object) -> bool:
    """Half a character (a lone surrogate) can't be written to a label file."""
    return isinstance(name, str) and bool(name.strip()) and not HALF_CHARACTER.search(name)


def _key(name: str) -> str:
    return "".join(name.split()).casefold()


def _best_spellings(spellings: Counter[str], listed: Sequence[str], chosen: Sequence[str] | None) -> dict[str, str]:
    """By key, the spelling to keep: the user's, else the most frequent, else the source's list's."""
    best: dict[str, str] = {}
    if chosen is not None:
        best = {_key(name): name.strip() for name in chosen}
        if "" in best or not 0 < len(best) == len(chosen):
            raise UsageError(f"--classes: expected every class once and none blank, but got {list(chosen)}")
        return best
    stripped: Counter[str] = Counter()
    for spelling, count in spellings.items():
        stripped[spelling.strip()] += count
    for name in [*sorted(stripped, key=lambda name: (-stripped[name], name)), *map(str.strip, listed)]:
        if not is_ignore_class(name):
            best.setdefault(_key(name), name)
    return best


def _ordered(best: Mapping[str, str], listed: Sequence[str], chosen: Sequence[str] | None) -> list[str]:
    if chosen is not None:
        return list(best)
    first = list(dict.fromkeys(key for key in map(_key, listed) if key in best))
    return first + sorted(best.keys() - set(first))


def _meaning(spelling: str, names: Sequence[str], is_selection: bool) -> Meaning:
    key = _key(spelling)
    if is_ignore_class(spelling):
        return Meaning(0, is_ignored=True)
    keys = [_key(name) for name in names]
    if key in keys:
        return Meaning(keys.index(key))
    near = difflib.get_close_matches(key, keys, 1, cutoff=0.75) if is_selection else []
    if near:
        meant = names[keys.index(near[0])]
        return Meaning(-1, fault=f"class {spelling!r} is not in --classes; did you mean {meant!r}?")
    return Meaning(-1)


def _unused(names: Sequence[str], spellings: Counter[str], chosen: Sequence[str] | None) -> list[Fault]:
    """Faults for classes that no box bears; a chosen one that looks like a slip is refused."""
    used = {_key(spelling): spelling.strip() for spelling in spellings}
    faults = []
    for name in names:
        if _key(name) in used:
            continue
        spare = [key for key in used if key not in map(_key, names)]
        near = difflib.get_close_matches(_key(name), spare, 1, cutoff=0.75) if chosen is not None else []
        if near:
            raise UsageError(f"--classes: no object is called {name!r}; did you mean {used[near[0]]!r}?")
        faults.append(Fault("classes", f"no object is called {name!r}: nothing to learn for it", "warning"))
    return faults


def _told(
    raws: Sequence[RawDefects], names: Sequence[str], meanings: Mapping[str, Meaning], spellings: Counter[str]
) -> list[Fault]:
    """One fault for every spelling that is not the kept one, at the first object that bears it."""
    first: dict[str, tuple[RawDefects, RawBox]] = {}
    for raw in raws:
        for box in raw.regions:
            if _is_name(box.class_name):
                first.setdefault(box.class_name, (raw, box))
    faults = []
    for spelling, (raw, box) in first.items():
        meaning, objects = meanings[spelling], f"{spellings[spelling]} object(s) from here on"
        reason, action = "", "repaired"
        if meaning.is_ignored:
            reason, action = f"class {spelling!r} marks ignore regions: {objects}", "warning"
        elif meaning.class_id < 0 and not meaning.fault:
            reason, action = f"class {spelling!r} is not in --classes: {objects} left out, as background", "dropped"
        elif meaning.class_id >= 0 and spelling != names[meaning.class_id]:
            kept = names[meaning.class_id]
            reason = f"class {spelling!r} differs from {kept!r} in case or blanks alone: read as it, {objects}"
        if reason:
            faults.append(Fault(raw.label, reason, action, box.line, box.item))
    return faults
