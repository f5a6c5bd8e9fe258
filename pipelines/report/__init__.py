"""Self-contained HTML pages, of a run or a dataset's labels: plain values in, a file out; knows no engine, no task."""

from pipelines.report.content import RunResult, Table, TaskContent
from pipelines.report.curves import Line, Panel
from pipelines.report.page import write_report
from pipelines.report.pictures import ChangedImage, Findings, draw_findings, window_of_change
from pipelines.report.sheet import SheetImage, refuse_other_file, write_sheet

__all__ = [
    "ChangedImage",
    "Findings",
    "Line",
    "Panel",
    "RunResult",
    "SheetImage",
    "Table",
    "TaskContent",
    "draw_findings",
    "refuse_other_file",
    "window_of_change",
    "write_report",
    "write_sheet",
]
