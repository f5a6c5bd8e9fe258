"""What the end-to-end tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path has a space and Chinese letters, as people's have."""
    return tmp_path_factory.mktemp("工作 place")
