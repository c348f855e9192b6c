"""Division of work: trajectories in contiguous blocks over ranks, fixed by the two numbers alone."""

from __future__ import annotations

from functools import cached_property

from pycobre._util.frozen import frozen

__all__ = ["Split"]


@frozen()
class Split:
    """`total` things over `ranks` in contiguous blocks; the first `total % ranks` ranks have one more."""

    total: int
    ranks: int

    @cached_property
    def counts(self) -> tuple[int, ...]:
        share, more = divmod(self.total, self.ranks)
        return tuple(share + (rank < more) for rank in range(self.ranks))

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        firsts = [0]
        for count in self.counts[:-1]:
            firsts.append(firsts[-1] + count)
        return tuple(firsts)

    def block(self, rank: int) -> range:
        """The indices that belong to `rank`."""
        return range(self.firsts[rank], self.firsts[rank] + self.counts[rank])

    def owner(self, index: int) -> int:
        """The rank that `index` belongs to."""
        share, more = divmod(self.total, self.ranks)
        if index < more * (share + 1):
            return index // (share + 1)
        return more + (index - more * (share + 1)) // share
