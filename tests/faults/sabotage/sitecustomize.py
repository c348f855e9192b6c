"""Python loads this before anything else in every process of a trial: the fault is prepared there."""

import os

if "PYCOBRE_FAULT" in os.environ:
    import saboteur

    saboteur.prepare()
