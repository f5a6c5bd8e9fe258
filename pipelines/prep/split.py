"""Which image trains and which validates: whole groups, the same for every run, machine and file order."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from pipelines.errors import UsageError

GroupRule = Callable[[str], "str | None"]


def group_rule(rule: str | None) -> GroupRule:
    """The group of an image name (path below the source), None where the rule says nothing about it.

    Args:
        rule: None (every image its own group), "folder", "stem-prefix" (the file name up to its last "_" or
            "-": `roll7_012.jpg` belongs to `roll7`), or a regular expression with one group.

    Raises:
        UsageError: the regular expression is not valid or has not exactly one group.
    """
    if rule is None:
        return lambda name: name
    if rule == "folder":
        return lambda name: PurePosixPath(name).parent.as_posix()
    if rule == "stem-prefix":
        return lambda name: re.split(r"[_-][^_-]*$", PurePosixPath(name).stem)[0] or None
    try:
        pattern = re.compile(rule)
    except re.error as error:
        raise UsageError(f"group rule {rule!r} is not a valid regular expression: {error}") from None
    if pattern.groups != 1:
        raise UsageError(
            f"group rule must be folder, stem-prefix or a regular expression with one (group), but got {rule!r} "
            f"with {pattern.groups}"
        )

    def matched(name: str) -> str | None:
        match = pattern.search(name)
        return match[1] if match else None

    return matched


def joined_groups(groups: Sequence[str], contents: Sequence[str]) -> list[str]:
    """Groups joined wherever images have equal content, named by the smallest of the joined names."""
    parent = {group: group for group in groups}

    def root(group: str) -> str:
        while parent[group] != group:
            group = parent[group]
        return group

    first_with: dict[str, str] = {}
    for group, content in zip(groups, contents, strict=True):
        low, high = sorted((root(group), root(first_with.setdefault(content, group))))
        parent[high] = low
    return [root(group) for group in groups]


def val_groups(sizes: Mapping[str, int], val_share: float, seed: int) -> set[str]:
    """The groups that validate: about `val_share` of all images, never all groups.

    Groups are taken in the order of a hash of seed and name while they fit; so the choice depends neither on
    the order of files nor on the machine. Empty only where there is a single group.
    """
    if len(sizes) < 2 or val_share <= 0:
        return set()
    target = max(1, round(val_share * sum(sizes.values())))
    order = sorted(sizes, key=lambda group: hashlib.sha256(f"{seed}:{group}".encode()).digest())
    chosen: set[str] = set()
    total = 0
    for group in order:
        if total + sizes[group] <= target and len(chosen) < len(sizes) - 1:
            chosen.add(group)
            total += sizes[group]
    # Where every group is larger than the share, the smallest one is the nearest to it.
    return chosen or {min(order, key=lambda group: sizes[group])}
