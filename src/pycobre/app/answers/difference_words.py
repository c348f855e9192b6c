"""Of what kind a difference between two cases is, and how a planner would say it."""

from __future__ import annotations

from collections.abc import Iterable

from pycobre.app.answers.case_records import Difference

__all__ = ["category_of", "sentences"]

MOST_SENTENCES = 60
_SECTIONS = {
    "load_stats": "load",
    "load_factors": "load",
    "external_loads": "load",
    "initial_conditions": "storage",
    "inflow_stats": "inflow",
    "inflow_history": "inflow",
    "ar_coefficients": "inflow",
    "annual_components": "inflow",
    "external_inflows": "inflow",
    "noise_openings": "inflow",
    "correlation": "inflow",
    "stages": "horizon",
    "pre_study_stages": "horizon",
    "season_definitions": "horizon",
    "policy_graph": "horizon",
    "config": "setting",
    "penalties": "cost",
}
_ORDER = ("horizon", "system", "load", "storage", "outage", "limit", "cost", "inflow", "other", "setting")
_ENTITIES = {
    "hydros": "hydro plant",
    "thermals": "thermal plant",
    "buses": "bus",
    "lines": "line",
    "non_controllable_sources": "source",
    "energy_contracts": "contract",
    "pumping_stations": "pumping station",
}
_TITLES = {
    "load_stats": "load",
    "initial_conditions.storage": "initial storage",
    "initial_conditions.filling_storage": "initial storage while filling",
    "initial_conditions.recent_observations": "recent inflow",
    "thermal_bounds": "limits of thermal plants",
    "hydro_bounds": "limits of hydro plants",
    "line_bounds": "limits of lines",
    "inflow_stats": "inflow",
}


def category_of(section: str, field: str, before: str, after: str) -> str:
    """load, storage, cost, limit, outage, inflow, horizon, setting, system or other."""
    root = section.partition(".")[0]
    if root == "initial_conditions" and "observations" in section:
        return "inflow"
    if root in _SECTIONS:
        return _SECTIONS[root]
    leaf = field.rpartition(".")[2]
    if "cost" in leaf or "price" in leaf or root.endswith("_penalties"):
        return "cost"
    if root.endswith("_bounds") or leaf.startswith(("min_", "max_")) or leaf in ("direct_mw", "reverse_mw"):
        lost = not leaf.startswith("min_") and _zero(after) and not _zero(before)
        back = not leaf.startswith("min_") and _zero(before) and not _zero(after)
        return "outage" if (lost or back) and field else "limit"
    return "other"


def sentences(found: Iterable[Difference]) -> list[str]:
    """One sentence per difference, what matters most first; of very many, how many are left out."""
    ordered = sorted(found, key=lambda each: _ORDER.index(each.category))
    said = [_sentence(each) for each in ordered]
    if not said:
        return ["The two cases say the same."]
    if len(said) > MOST_SENTENCES:
        return [*said[:MOST_SENTENCES], f"And {len(said) - MOST_SENTENCES} more differences."]
    return said


def _sentence(each: Difference) -> str:
    title = _TITLES.get(each.section, each.section.replace("_", " ").replace(".", ": "))
    whose = f" of {each.entity}" if each.entity else ""
    if each.section in _ENTITIES:
        title, whose = _ENTITIES[each.section], f" {each.entity}"
    if each.section == "config":
        return f"Setting {each.field}: {each.before} before, {each.after} now."
    if not each.field and each.category == "system" and {each.before, each.after} == {"there", "absent"}:
        return f"{title.capitalize()} {each.entity} is {'gone' if each.after == 'absent' else 'new'}."
    when = f" ({each.when})" if each.when else ""
    if not each.field:
        parts = ", ".join(part for part in (each.before, each.after) if part)
        return f"{title.capitalize()}{whose}{when}: {parts}."
    rows = f" on average over {each.rows} rows" if each.rows > 1 else ""
    relative = ""
    if each.mean_before and each.mean_after is not None:
        relative = f" ({100 * (each.mean_after - each.mean_before) / abs(each.mean_before):+.2f} %)"
    outage = ""
    if each.category == "outage":
        outage = " Out of service." if _zero(each.after) else " Back in service."
    what = f"{title.capitalize()}{whose}{when}: {each.field} {each.before} before, {each.after} now"
    return f"{what}{rows}{relative}.{outage}"


def _zero(text: str) -> bool:
    try:
        return float(text) == 0.0
    except ValueError:
        return False
