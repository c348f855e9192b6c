"""Pictures of a result directory: a self-contained HTML page and PNG files."""

from pycobre.app.plot.report import write_report

__all__ = ["write_report"]
