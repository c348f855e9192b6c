"""Power-system nouns: data only.

case         a whole study                         section      where its parts are on disk
system       plants, buses, lines, contracts       horizon      stages, blocks, seasons, the policy graph
graph        a study's nodes and arcs              boundary     what lies beyond its last stage
scenarios    inflows, loads and sources            initial      where the study starts
constraints  limits and costs by stage             penalties    what violations cost
production   production functions of plants        config       what a run does
expressions · parameters  constraints as text      seasons · anticipation  which season, who decides
record · table · canonical  how records and tables are declared and put in order
findings     what a check says
"""

from pycobre.hydro.model.case import Case
from pycobre.hydro.model.findings import Finding, Layer, Severity

__all__ = ["Case", "Finding", "Layer", "Severity"]
