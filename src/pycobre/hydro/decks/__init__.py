"""Decks of the Brazilian planning programs NEWAVE and DECOMP, converted to cases by the library `cobre-bridge`.

import_deck   a deck directory to a case directory, with everything that was done to it on the way
bridge        the conversion in a process of its own, and what it reports
deck_repairs  what decks that are older than a field of today's format lack
case_repairs  what the converted case lacks
"""

from pycobre.hydro.decks.import_deck import DECK_KINDS, ImportedDeck, import_deck

__all__ = ["DECK_KINDS", "ImportedDeck", "import_deck"]
