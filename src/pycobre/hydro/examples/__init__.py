"""Cases that come with the package: examples to start from, and synthetic systems of any size."""

from pycobre.hydro.examples.catalogue import EXAMPLES, Example, example
from pycobre.hydro.examples.synthetic import synthetic

__all__ = ["EXAMPLES", "Example", "example", "synthetic"]
