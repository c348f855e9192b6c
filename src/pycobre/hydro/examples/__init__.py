"""Cases that come with the package: examples to start from, and synthetic systems of any size.

catalogue  the examples by name      one_reservoir · four_regions · cascade  one each
synthetic  a system of any size, from network · water · parts · draw
"""

from pycobre.hydro.examples.catalogue import EXAMPLES, Example, example
from pycobre.hydro.examples.synthetic import synthetic

__all__ = ["EXAMPLES", "Example", "example", "synthetic"]
