"""Multistage problems in the files of others: MSPFormat, StochOptFormat 1.0, SMPS.

files          read, write and read_validation: which format a file has
msp · msp_lattice · msp_write       MSPFormat: X.problem.json and X.lattice.json
sof · moi · sof_write               StochOptFormat and the functions of MathOptFormat in it
smps · mps · smps_stoch · smps_tree   SMPS: core, time and stoch files
plain          the LP of every opening as plain numbers, for writing
json_values    JSON whose values are checked
sections       lines of files of sections
text_files     the text of a file, of a limited size
"""

from pycobre.problem.formats.files import read, read_validation, write
from pycobre.problem.formats.sof import ValidationStep

__all__ = ["ValidationStep", "read", "read_validation", "write"]
