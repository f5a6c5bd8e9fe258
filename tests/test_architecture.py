"""The parts import only what docs/architecture.md allows, the worker-side parts start without Paddle, files stay small.

Run: pytest tests/test_architecture.py
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PIPELINES = Path(__file__).resolve().parents[1] / "pipelines"
MAX_LINES = 300
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
DYNAMIC = "module-named-at-run-time"


@dataclass(frozen=True)
class Allowance:
    """What one part may import: other parts, third-party packages, and packages inside functions only."""

    parts: frozenset[str]
    packages: frozenset[str]
    lazy_packages: frozenset[str]


def allow(parts: str = "", packages: str = "", lazily: str = "") -> Allowance:
    return Allowance(frozenset(parts.split()), frozenset(packages.split()), frozenset(lazily.split()))


# The import table. `errors` is left out of the rows: every part but the values may raise one.
ALLOWED = {
    "errors": allow(),
    "records": allow(packages="numpy"),
    "geometry": allow("records", "numpy shapely pyclipper"),
    "folders": allow(),
    "tiles": allow("records geometry", "numpy"),
    "config": allow("records geometry", "numpy pydantic yaml"),
    "task": allow("records", "numpy", lazily="paddle"),
    "dataset": allow("records geometry", "numpy cv2 PIL yaml"),
    "prep": allow(
        "dataset records geometry",
        "numpy cv2 PIL yaml shapely typing_extensions",
        lazily="distributed pypdfium2 pycocotools",
    ),
    "synthesis": allow("dataset records geometry", "numpy cv2 PIL yaml"),
    "batching": allow("dataset tiles records geometry", "numpy cv2"),
    "evaluation": allow("records geometry", "numpy shapely pycocotools"),
    "report": allow("records geometry", "numpy matplotlib jinja2"),
    "weights": allow(packages="numpy", lazily="paddle safetensors google onnx"),
    "text_detection": allow(
        "task records geometry weights", f"numpy cv2 shapely pyclipper paddle paddlex {DYNAMIC}", lazily="paddle"
    ),
    "defect_detection": allow("task records geometry tiles weights", "numpy cv2 paddle", lazily="ppdet"),
    "engine": allow("task records folders", "numpy paddle", lazily="visualdl"),
    "export": allow(
        "task records geometry folders defect_detection",
        "numpy shapely yaml paddle",
        lazily="paddle paddleocr paddlex ppdet paddle2onnx",
    ),
    "doctor": allow(lazily="psutil"),
    "runs": allow(
        "records geometry folders tiles config task dataset prep synthesis batching evaluation report weights"
        " text_detection defect_detection engine export doctor",
        "numpy cv2 PIL paddle pydantic yaml",
        lazily="paddle",
    ),
    "terminal": allow("runs", "rich"),
    "cli": allow("runs config terminal cli_options", "typer"),
    "cli_options": allow("config", "typer"),
}
WITHOUT_PADDLE = (
    "batching",
    "dataset",
    "prep",
    "evaluation",
    "synthesis",
    "report",
    "tiles",
    "config",
    "doctor",
    "text_detection.targets",
    "defect_detection.targets",
)


@dataclass(frozen=True)
class Import:
    """One imported module: `paddle.nn` or `pipelines.engine.update`; lazy when inside a function or type-only."""

    module: str
    line: int
    is_lazy: bool


def imports_of(source: str) -> Iterator[Import]:
    yield from _imports_below(ast.parse(source), is_lazy=False)


def _imports_below(node: ast.AST, is_lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        yield from (Import(name, child.lineno, is_lazy) for name in _imported_names(child))  # type: ignore[attr-defined]
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        is_for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _imports_below(child, is_lazy or is_function or is_for_types)


def _imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        if node.level:
            return [f"pipelines.<relative>.{node.module}"]
        is_root = node.module == "pipelines"
        return [f"pipelines.{alias.name}" for alias in node.names] if is_root else [str(node.module)]
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
        first = node.args[0] if node.args else None
        return [first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else DYNAMIC]
    return []


def violations(part: str, source: str) -> list[str]:
    """Every import of `source`, a file of `part`, that the table does not allow."""
    allowance = ALLOWED.get(part)
    if allowance is None:
        return [f"{part} is not in the import table: add it here and to docs/architecture.md"]
    return [
        f"line {each.line}: {part} may not import {each.module}"
        for each in imports_of(source)
        if not _is_allowed(part, each, allowance)
    ]


def _is_allowed(part: str, each: Import, allowance: Allowance) -> bool:
    root, *rest = each.module.split(".")
    if root == "pipelines":
        return bool(rest) and (rest[0] in allowance.parts or rest[0] in (part, "errors", "__version__"))
    if root in sys.stdlib_module_names or root in allowance.packages:
        return True
    return each.is_lazy and root in allowance.lazy_packages


def part_of(file: Path) -> str:
    return file.relative_to(PIPELINES).with_suffix("").parts[0]


def source_files() -> list[Path]:
    return sorted(file for file in PIPELINES.rglob("*.py") if file != PIPELINES / "__init__.py")


@pytest.mark.parametrize("file", source_files(), ids=lambda file: str(file.relative_to(PIPELINES)))
def test_a_file_imports_only_what_its_part_may(file: Path) -> None:
    assert violations(part_of(file), file.read_text(encoding="utf-8")) == []


def test_there_are_files_to_check() -> None:
    assert {"records", "task", "engine", "text_detection"} <= {part_of(file) for file in source_files()}


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("engine", "from pipelines.text_detection.network import build_network"),
        ("engine", "def late():\n    import paddleocr"),
        ("engine", "from pipelines import runs"),
        ("text_detection", "import pipelines.defect_detection"),
        ("text_detection", "from pipelines.engine.update import Updater"),
        ("batching", "import paddle"),
        ("batching", "class Loader:\n    def start(self):\n        from paddle.io import DataLoader"),
        ("prep", "import importlib\npaddle = importlib.import_module('paddle')"),
        ("evaluation", "import importlib\nmodule = importlib.import_module(name)"),
        ("task", "import paddle"),
        ("export", "import paddleocr"),
        ("records", "from pipelines.geometry import polygon_area"),
        ("cli", "from pipelines.engine import update"),
        ("cli", "from .engine import update"),
        ("doctor", "import numpy"),
        ("novelty", "import os"),
    ],
)
def test_a_planted_violation_is_found(part: str, source: str) -> None:
    assert len(violations(part, source)) == 1


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("task", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import paddle"),
        ("export", "def check():\n    from paddleocr import TextDetection"),
        (
            "engine",
            "import paddle.nn\nfrom pipelines.engine.update import Updater\nfrom pipelines.errors import DataError",
        ),
        ("runs", "from pipelines import engine, __version__"),
    ],
)
def test_an_allowed_import_passes(part: str, source: str) -> None:
    assert violations(part, source) == []


@pytest.mark.parametrize("module", WITHOUT_PADDLE)
def test_what_workers_run_starts_without_paddle(module: str) -> None:
    folder = PIPELINES.joinpath(*module.split("."))
    names = [f"{module}.{file.stem}" for file in sorted(folder.glob("[!_]*.py"))] if folder.is_dir() else [module]
    lines = [f"import pipelines.{name}" for name in (names or [module])]
    assert _heavy_modules_after(lines) == "[]"


def test_the_check_for_paddle_can_fail() -> None:
    assert "paddle" in _heavy_modules_after(["import sys, types", "sys.modules['paddle'] = types.ModuleType('paddle')"])


def _heavy_modules_after(lines: list[str]) -> str:
    script = "\n".join([*lines, "import sys", "print([n for n in ('paddle', 'paddlex', 'ppdet') if n in sys.modules])"])
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=PIPELINES.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_file_has_more_than_300_lines() -> None:
    lengths = {str(file.relative_to(PIPELINES)): len(file.read_text().splitlines()) for file in source_files()}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    named = {part for file in source_files() for part in file.relative_to(PIPELINES).with_suffix("").parts}
    assert named & FORBIDDEN_NAMES == set()


def test_gpu_pins_equal_cpu_pins_but_for_the_build_of_paddle() -> None:
    cpu, gpu = (_pins(PIPELINES.parent / "requirements" / name) for name in ("cpu.txt", "gpu.txt"))
    assert [line.replace("paddlepaddle-gpu==", "paddlepaddle==") for line in gpu] == cpu
    assert all("==" in line and "/" not in line for line in cpu)


def _pins(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def test_the_documented_import_table_is_the_enforced_one() -> None:
    text = (PIPELINES.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    documented = {row[0].split(",")[0]: row[1:] for row in rows if len(row) == 4 and row[0].split(",")[0] in ALLOWED}
    assert documented.keys() == ALLOWED.keys()
    for part, (parts, packages, lazily) in documented.items():
        allowance = ALLOWED[part]
        assert part == "runs" or _words(parts) == allowance.parts, part
        assert _words(packages) == allowance.packages - {DYNAMIC}, part
        assert _words(lazily) == allowance.lazy_packages - allowance.packages, part


def _words(cell: str) -> set[str]:
    return {word.split()[0].split(".")[0] for word in cell.split(",") if word.strip()}
