"""Power-system equations: from a case to a multistage problem."""

from pycobre.hydro.build import Study, build_study

__all__ = ["Study", "build_study"]
