"""What fits is taken, everything else is in the table, and a file of another network is refused.

pytest tests/unit/weights/test_matching.py
"""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.errors import WeightsError
from pipelines.weights import MatchTable, Tensors, match_tensors, require_backbone

EXPECTED = {"backbone.a": (2, 3), "backbone.b": (4,), "head.c": (5,), "head.d": ()}


def matched(named: Tensors, **starts: str) -> tuple[Tensors, MatchTable]:
    return match_tensors(
        EXPECTED, named, "best.pdparams", ("backbone", "head"), lambda name: name.split(".")[0], starts, ("a note",)
    )


def zeros(**shapes: tuple[int, ...]) -> Tensors:
    return {name.replace("_", "."): np.zeros(shape) for name, shape in shapes.items()}


WHOLE = zeros(backbone_a=(2, 3), backbone_b=(4,), head_c=(5,), head_d=())


def test_a_file_that_fits_is_taken_whole() -> None:
    fitting, table = matched(WHOLE)
    assert fitting.keys() == EXPECTED.keys()
    assert [(row.part, row.share, row.start) for row in table.rows] == [("backbone", 1.0, ""), ("head", 1.0, "")]
    assert table.unused == ()


def test_what_is_missing_misshapen_or_left_over_is_listed_and_not_taken() -> None:
    fitting, table = matched(zeros(backbone_a=(3, 2), head_c=(5,), head_d=(), aux_weight=(1,)))
    assert fitting.keys() == {"head.c", "head.d"}
    row = table.row("backbone")
    assert (row.num_matched, row.num_expected, row.share) == (0, 2, 0.0)
    assert row.missing == ("backbone.b",) and row.shape_mismatches == (("backbone.a", (2, 3), (3, 2)),)
    assert table.unused == ("aux.weight",)
    assert table.render().splitlines() == [
        "weights: best.pdparams",
        "part           matched  missing  shape  rest",
        "backbone           0/2        1      1  random",
        "head               2/2        0      0",
        "  backbone.a: network (2, 3), file (3, 2)",
        "  missing in the file: backbone.b",
        "  not used: aux.weight",
        "  a note",
    ]


def test_a_part_the_file_never_holds_says_where_it_starts_and_lists_no_names() -> None:
    _, table = matched(zeros(backbone_a=(2, 3), backbone_b=(4,)), head="anew")
    assert "head               0/2        2      0  anew" in table.render()
    assert "missing in the file" not in table.render()


def test_a_long_list_is_cut_with_its_number() -> None:
    names = zeros(**{f"extra_{letter}": (1,) for letter in "abcdefg"})
    _, table = matched({**WHOLE, **names})
    assert "not used: extra.a, extra.b, extra.c, extra.d, extra.e and 2 more" in table.render()


def test_under_nine_tenths_of_the_backbone_is_refused_with_the_table() -> None:
    expected = {f"backbone.{i}": (1,) for i in range(10)}

    def table(num_there: int) -> MatchTable:
        named = {f"backbone.{i}": np.zeros(1) for i in range(num_there)}
        return match_tensors(expected, named, "x.onnx", ("backbone",), lambda name: "backbone", {})[1]

    require_backbone(table(9), "picodet")
    with pytest.raises(WeightsError) as refusal:
        require_backbone(table(8), "picodet")
    text = str(refusal.value)
    assert "x.onnx: these weights do not fit picodet: 80% of the backbone matched, at least 90% is needed" in text
    assert "8/10" in text
