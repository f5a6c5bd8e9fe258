"""One self-contained HTML page a run: plain values in, a file out; knows no network, no engine and no task."""

from pipelines.report.content import RunResult, Table, TaskContent
from pipelines.report.curves import Line, Panel
from pipelines.report.page import write_report
from pipelines.report.pictures import ChangedImage, Findings, draw_findings, window_of_change

__all__ = [
    "ChangedImage",
    "Findings",
    "Line",
    "Panel",
    "RunResult",
    "Table",
    "TaskContent",
    "draw_findings",
    "window_of_change",
    "write_report",
]
