"""Hydrothermal power systems: everything that knows a plant.

model        the nouns of a case, as data             files       a case on disk: read, write, override, migrate
checks       what can be wrong with a case            examples    bundled cases and synthetic systems
equations    the stage LP                             uncertainty inflows, loads and sources as random variables
tables       results in terms of plants and buses     study       what the application runs
build        a case made into a problem            decks       decks of NEWAVE and DECOMP, made into cases
"""

from pycobre.hydro.build import HydroModel, build_model

__all__ = ["HydroModel", "build_model"]
