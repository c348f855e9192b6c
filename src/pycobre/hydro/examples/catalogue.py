"""The bundled examples by name, each with its README."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from pycobre.errors import OptionError
from pycobre.hydro.examples.cascade import cascade
from pycobre.hydro.examples.four_regions import four_regions
from pycobre.hydro.examples.one_reservoir import one_reservoir
from pycobre.hydro.model.case import Case

__all__ = ["EXAMPLES", "Example", "example"]


@dataclass(frozen=True)
class Example:
    """A case, what it shows, and the lower bound that its own settings reach, to four digits."""

    name: str
    summary: str
    build: Callable[[], Case]
    lower_bound: float

    @property
    def readme(self) -> str:
        """Markdown for the directory of the case."""
        text = (files("pycobre.hydro.examples") / "readme" / f"{self.name}.md").read_text(encoding="utf-8")
        return text.replace("LOWER_BOUND", f"{self.lower_bound:,.0f}")


EXAMPLES: dict[str, Example] = {
    e.name: e
    for e in (
        Example(
            "one-reservoir", "one reservoir and three thermal plants over a year", one_reservoir, 3.231e7
        ),
        Example(
            "four-regions", "four regions with rivers, wind, thermal plants and lines", four_regions, 6.642e9
        ),
        Example("cascade", "five plants on two rivers, inflows that remember two months", cascade, 4.475e8),
    )
}


def example(name: str) -> Example:
    """The example of that name; `OptionError` names the others."""
    try:
        return EXAMPLES[name]
    except KeyError:
        raise OptionError(
            f"there is no example {name!r}. Choose one of: {', '.join(EXAMPLES)}, or synthetic."
        ) from None
