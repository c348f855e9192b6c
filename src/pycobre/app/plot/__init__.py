"""Figures of a result directory: a self-contained HTML page and PNG files.

summary  the numbers behind the figures; inflow: those of the inflow model
report   the page
figures  the same figures as PNG files; inflow_figures: those of the inflow model
"""

from pycobre.app.plot.report import write_report

__all__ = ["write_report"]
