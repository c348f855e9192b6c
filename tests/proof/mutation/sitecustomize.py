"""Python loads this before anything else in every process of a mutated run: the mechanism is broken there."""

import os

if "PYCOBRE_MUTATION" in os.environ:
    import careless

    careless.prepare(os.environ["PYCOBRE_MUTATION"])
