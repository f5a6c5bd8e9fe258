"""What every test gets: fixed seeds, a folder of its own, and real data only where it is available."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(0)
    np.random.seed(0)


@pytest.fixture
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture
def real_data() -> Path:
    """The folder of real data that WHOLEBATCH_DATA names; a test without it is skipped, and says so."""
    folder = os.environ.get("WHOLEBATCH_DATA", "")
    if not folder:
        pytest.skip("set WHOLEBATCH_DATA to a folder of real data to run this test")
    if not Path(folder).is_dir():
        pytest.fail(f"WHOLEBATCH_DATA is no folder: {folder}")
    return Path(folder)
