"""What the application runs: a case as problem, options, random numbers and tables.

case_study  all of it    options  the configuration as the options of training    samplers  its forward draws
system  plants and capacities
"""

from pycobre.hydro.study.case_study import CaseStudy, study_of_case
from pycobre.hydro.study.samplers import CaseSampler

__all__ = ["CaseSampler", "CaseStudy", "study_of_case"]
