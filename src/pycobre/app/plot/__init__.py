"""Figures of a result directory: a self-contained HTML page and PNG files.

summary  the numbers behind the figures
report   the page
figures  the same figures as PNG files
"""

from pycobre.app.plot.report import write_report

__all__ = ["write_report"]
