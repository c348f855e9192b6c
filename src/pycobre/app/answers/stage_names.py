"""From the name of a variable of a stage's LP to the plant, bus or line that it belongs to."""

from __future__ import annotations

from pycobre._util.frozen import frozen
from pycobre.hydro.build import HydroModel

__all__ = ["Place", "StageNames"]

#: Variables by the first part of their names: what they are, whose they are, and their unit.
_KINDS = {
    "thermal": ("thermal", "thermal", "MW"),
    "anticipated_decision": ("thermal", "thermal", "MW"),
    "exchange_direct": ("exchange", "line", "MW"),
    "exchange_reverse": ("exchange", "line", "MW"),
    "deficit": ("deficit", "bus", "MW"),
    "excess": ("excess", "bus", "MW"),
    "source": ("source", "source", "MW"),
    "contract": ("contract", "contract", "MW"),
    "turbined": ("hydro", "hydro", "m3/s"),
    "generation": ("hydro", "hydro", "MW"),
    "spillage": ("spillage", "hydro", "m3/s"),
    "diversion": ("diversion", "hydro", "m3/s"),
    "pumped": ("pumping", "pump", "m3/s"),
    "storage": ("storage", "hydro", "hm3"),
    "transit": ("water on its way", "hydro", "hm3"),
    "inflow_slack": ("inflow slack", "hydro", "m3/s"),
    "storage_in": ("state", "hydro", "hm3"),
    "inflow_lag": ("state", "hydro", "m3/s"),
    "inflow": ("state", "hydro", "m3/s"),
}


@frozen()
class Place:
    """What a variable is."""

    kind: str
    entity: str
    entity_id: int | None
    unit: str


class StageNames:
    """The variables of a case's LPs by name."""

    def __init__(self, model: HydroModel) -> None:
        index = model.index
        self._ids = {
            "thermal": dict(zip(index.thermal_names, index.thermal, strict=True)),
            "line": dict(zip(index.line_names, index.line, strict=True)),
            "bus": dict(zip(index.bus_names, index.bus, strict=True)),
            "source": dict(zip(index.source_names, index.source, strict=True)),
            "contract": dict(zip(index.contract_names, index.contract, strict=True)),
            "hydro": dict(zip(index.hydro_names, index.hydro, strict=True)),
            "pump": dict(zip(index.pump_names, index.pump, strict=True)),
        }

    def of(self, variable: str) -> Place:
        """The place of a variable `kind[entity,…]`; labels hold neither brackets nor commas."""
        prefix, _, rest = variable.partition("[")
        labels = rest.rstrip("]").split(",")
        if prefix.endswith("_slack") and prefix not in _KINDS:
            return Place(f"limit {prefix.removesuffix('_slack')}", labels[0], self._known(labels[0]), "")
        kind, of, unit = _KINDS.get(prefix, ("other", "hydro", ""))
        for label in labels:
            plain = label.partition("@")[0]
            for candidate in (label, plain):
                if candidate in self._ids[of]:
                    return Place(kind, candidate, self._ids[of][candidate], unit)
        return Place(kind, labels[0], None, unit)

    def _known(self, label: str) -> int | None:
        return next((ids[label] for ids in self._ids.values() if label in ids), None)
