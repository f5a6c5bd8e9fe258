"""One self-contained HTML page a run: plain values in, a file out; knows no network and no engine."""

from pipelines.report.content import RunResult
from pipelines.report.page import write_report
from pipelines.report.pictures import ChangedImage, Findings, draw_findings, window_of_change

__all__ = ["ChangedImage", "Findings", "RunResult", "draw_findings", "window_of_change", "write_report"]
