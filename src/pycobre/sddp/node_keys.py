"""Nodes as their author names them: by key, never by position unless the position is asked for.

A node's name is the text of its key (`1` and `"1"` name the same node of a linear graph), so an int is a key like
any other. A position in the problem's list of nodes has a keyword of its own, `index`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from pycobre._util.suggest import did_you_mean
from pycobre.errors import CobreError

__all__ = ["node_position", "node_position_or_index"]


def node_position(names: Sequence[str], key: Hashable, where: str, error: type[CobreError]) -> int:
    """The position of the node with this key; raises `error` with `where` for a key that no node has."""
    # A Markovian graph's keys (stage, state) have names stage:state; other keys are named by their text.
    for name in (str(key), ":".join(map(str, key)) if isinstance(key, tuple) else str(key)):
        if name in names:
            return names.index(name)
    known = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    raise error(f"{where}: expected the key of a node ({known}), got {key!r}.{did_you_mean(str(key), names)}")


def node_position_or_index(
    names: Sequence[str], key: Hashable | None, index: int | None, where: str, error: type[CobreError]
) -> int:
    """The same, or `index` itself where that is given instead of a key."""
    if (key is None) == (index is None):
        raise error(
            f"{where}: expected the key of a node or its index, got {'neither' if key is None else 'both'}."
        )
    if index is not None:
        if not isinstance(index, int | np.integer) or isinstance(index, bool) or not 0 <= index < len(names):
            raise error(f"{where}: expected an index from 0 to {len(names) - 1}, got {index!r}.")
        return int(index)
    return node_position(names, key, where, error)
