"""What a weights file gave to a network: nothing is loaded, left out or made up in silence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pipelines.errors import WeightsError
from pipelines.weights.files import Tensors

MIN_BACKBONE_SHARE = 0.9
_NUM_NAMES_SHOWN = 5


@dataclass(frozen=True)
class PartMatch:
    """How one part of the network fared.

    Attributes:
        part: "backbone", "neck", "head", …
        num_matched: tensors taken from the file.
        missing: names in the network that the file has no tensor for.
        shape_mismatches: name, shape in the network, shape in the file.
        start: where the other tensors' values come from: "" if all matched, else what was done.
        is_expected: the file of this kind never holds the part, so its names need no listing.
    """

    part: str
    num_matched: int
    missing: tuple[str, ...] = ()
    shape_mismatches: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    start: str = ""
    is_expected: bool = False

    @property
    def num_expected(self) -> int:
        return self.num_matched + len(self.missing) + len(self.shape_mismatches)

    @property
    def share(self) -> float:
        return self.num_matched / self.num_expected


@dataclass(frozen=True)
class MatchTable:
    """What a weights file gave to a network.

    Attributes:
        source: as the user gave it.
        rows: one a part.
        unused: names in the file that the network has no place for.
        notes: what else happened on the way, a line each.
    """

    source: str
    rows: tuple[PartMatch, ...]
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def row(self, part: str) -> PartMatch:
        return next(row for row in self.rows if row.part == part)

    def render(self) -> str:
        """The table as plain text."""
        lines = [f"weights: {self.source}", f"{'part':<10} {'matched':>11} {'missing':>8} {'shape':>6}  rest"]
        for row in self.rows:
            matched = f"{row.num_matched}/{row.num_expected}"
            lines.append(
                f"{row.part:<10} {matched:>11} {len(row.missing):>8} {len(row.shape_mismatches):>6}  {row.start}"
            )
        for row in self.rows:
            lines += [f"  {name}: network {ours}, file {theirs}" for name, ours, theirs in row.shape_mismatches]
            if row.missing and not row.is_expected:
                lines.append(f"  missing in the file: {_listed(row.missing)}")
        if self.unused:
            lines.append(f"  not used: {_listed(self.unused)}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(line.rstrip() for line in lines)


def match_tensors(
    expected: Mapping[str, Sequence[int]],
    named: Tensors,
    source: str,
    parts: Sequence[str],
    part_of: Callable[[str], str],
    starts: Mapping[str, str],
    notes: Sequence[str] = (),
) -> tuple[Tensors, MatchTable]:
    """The tensors that fit a network by name and shape, and the table.

    Args:
        expected: shape of every tensor of the network, by name.
        named: the file's tensors under the network's names.
        source: of the file, as the user gave it.
        parts: of the network, in the table's order.
        part_of: the part that a tensor of the network belongs to.
        starts: where a part's other values come from, if not "random".
        notes: for the table.
    """
    fitting = {name: named[name] for name, shape in expected.items() if name in named and _fits(named[name], shape)}
    rows = []
    for part in parts:
        names = [name for name in expected if part_of(name) == part]
        missing = tuple(name for name in names if name not in named)
        mismatches = tuple(
            (name, tuple(expected[name]), named[name].shape) for name in names if name in named and name not in fitting
        )
        start = starts.get(part, "random") if missing or mismatches else ""
        num_matched = sum(name in fitting for name in names)
        rows.append(PartMatch(part, num_matched, missing, mismatches, start, part in starts))
    unused = tuple(sorted(name for name in named if name not in expected))
    return fitting, MatchTable(source, tuple(rows), unused, tuple(notes))


def require_backbone(table: MatchTable, network: str) -> None:
    """Refuse weights that are of another network.

    Raises:
        WeightsError: under 90 % of the backbone matched; shows the table.
    """
    share = table.row("backbone").share
    if share < MIN_BACKBONE_SHARE:
        raise WeightsError(
            f"{table.source}: these weights do not fit {network}: {share:.0%} of the backbone matched, at least"
            f" {MIN_BACKBONE_SHARE:.0%} is needed; is model.network the one they were trained with?\n{table.render()}"
        )


def _fits(tensor: object, shape: Sequence[int]) -> bool:
    return tuple(getattr(tensor, "shape", ())) == tuple(shape)


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:_NUM_NAMES_SHOWN])
    return shown if len(names) <= _NUM_NAMES_SHOWN else f"{shown} and {len(names) - _NUM_NAMES_SHOWN} more"
