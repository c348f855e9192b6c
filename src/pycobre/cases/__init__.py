"""Cases that come with the package: examples to start from, and synthetic systems of any size."""

from pycobre.cases.examples import EXAMPLES, Example, example
from pycobre.cases.synthetic import synthetic

__all__ = ["EXAMPLES", "Example", "example", "synthetic"]
