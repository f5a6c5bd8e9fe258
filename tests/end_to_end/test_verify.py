"""`verify` on the pretrained network: accumulated gradients are the whole batch's, mean-of-means is not.

Run: pytest tests/end_to_end/test_verify.py
"""

from __future__ import annotations

import json

import pytest

from tests.end_to_end.tiny_run import SMOKE, TINY, as_options, wholebatch

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("options", "bound"), [((), 1e-4), (("--float64",), 1e-9)], ids=["float32", "float64"])
def test_exact_is_the_whole_batch_and_mean_is_not(options, bound, workplace):
    file = f"verified{len(options)}.json"
    printed = wholebatch(workplace, "verify", "-c", SMOKE, *as_options(TINY), *options, "--json", file)
    result = json.loads((workplace / file).read_text(encoding="utf-8"))
    assert result["exact"]["max_relative_error"] <= bound
    assert result["exact"]["cosine"] == pytest.approx(1.0, abs=1e-6)
    assert result["mean"]["max_relative_error"] > 1e-2
    weights = result["image_weight"]
    assert weights["exact"]["min"] == pytest.approx(1.0, abs=1e-3)
    assert weights["exact"]["max"] == pytest.approx(1.0, abs=1e-3)
    assert weights["mean"]["max"] - weights["mean"]["min"] > 1e-2
    assert "8 samples" in printed and "Relative error by tensor" in printed
