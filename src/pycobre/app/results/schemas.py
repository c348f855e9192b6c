"""The tables of a result directory: every column of every table, with its type, unit and meaning.

One place, used to write the tables, to read them back and to print the reference page. Simulation tables are
long: one row per scenario, stage, block and entity, sorted in that order, so the bytes do not depend on who
simulated what.
"""

from __future__ import annotations

from pycobre._util.frozen import frozen

__all__ = [
    "CONVERGENCE",
    "ENTITIES",
    "MODEL_TABLES",
    "PROBLEM_TABLES",
    "SIMULATION_TABLES",
    "TABLES",
    "TIMING",
    "Column",
    "Table",
]


@frozen()
class Column:
    """One column: `dtype` is a NumPy name (`int32`, `int64`, `float64`)."""

    name: str
    dtype: str
    unit: str
    meaning: str


@frozen()
class Table:
    """One table and where it stands in the result directory."""

    name: str
    path: str
    meaning: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


#: Which entities of a run's metadata the ids of a column are.
ENTITIES = {
    "hydro_id": "hydros",
    "other_hydro_id": "hydros",
    "thermal_id": "thermals",
    "bus_id": "buses",
    "line_id": "exchanges",
    "ncs_id": "non_controllables",
    "contract_id": "contracts",
    "pumping_station_id": "pumping",
    "constraint_id": "generic_constraints",
}


def _id(name: str, meaning: str) -> Column:
    return Column(name, "int32", "", meaning)


def _real(name: str, unit: str, meaning: str) -> Column:
    return Column(name, "float64", unit, meaning)


_SCENARIO = _id("scenario_id", "simulated scenario, from 0")
_STAGE = _id("stage_id", "stage, from 0")
_NODE = _id("node_id", "node of the policy graph; without nodes of its own, the stage")
_BLOCK = _id("block_id", "load block of the stage")
_HOURS = _real("hours", "h", "length of the block")

CONVERGENCE = Table(
    "convergence",
    "training/convergence.parquet",
    "One row per training iteration.",
    (
        _id("iteration", "from 1"),
        _real("lower_bound", "$", "risk-adjusted bound at the root after the iteration"),
        _real("upper_bound", "$", "mean cost of the iteration's forward trajectories"),
        _real("upper_bound_std", "$", "their sample standard deviation"),
        _real("upper_bound_half_width", "$", "half of the 95 % confidence interval of the mean"),
        _real("gap", "1", "(upper − lower) / max(1, |lower|)"),
        Column("cuts_added", "int64", "", "new cuts"),
        Column("cuts_total", "int64", "", "cuts stored so far"),
        Column("cuts_active", "int64", "", "cuts the selection keeps active"),
        Column("lp_solves", "int64", "", "LPs of the iteration"),
        Column("simplex_iterations", "int64", "", "simplex iterations of the iteration"),
    ),
)

TIMING = Table(
    "timing",
    "training/timing.parquet",
    "Where the time went: one row per iteration and rank. The one table that differs from run to run.",
    (
        _id("iteration", "from 1"),
        _id("rank", "rank of the process"),
        _real("forward_s", "s", "forward pass"),
        _real("backward_s", "s", "backward pass"),
        _real("solve_s", "s", "inside the LP solver"),
        _real("communicate_s", "s", "moving data between ranks"),
        _real("wait_s", "s", "waiting for slower ranks"),
        _real("other_s", "s", "everything else"),
        _real("total_s", "s", "the whole iteration"),
        Column("lp_solves", "int64", "", "LPs that this rank solved"),
        Column("simplex_iterations", "int64", "", "their simplex iterations"),
        Column("rejected_answers", "int64", "", "answers of HiGHS that failed the certificate, solved again"),
    ),
)

_HYDRO = _id("hydro_id", "")
_OF_HISTORY = "of the season's years in the history"
_OF_OPENINGS = "over all paths of openings, from the observed lags; negative inflows left as they are"

MODEL_TABLES = (
    Table(
        "inflow_models",
        "stochastic/inflow_models.parquet",
        "The inflow model that the study uses, given or fitted: one row per plant and stage.",
        (
            _HYDRO,
            _STAGE,
            _id("order", "largest lag with a coefficient"),
            _real("mean_m3s", "m3/s", "seasonal mean"),
            _real("std_m3s", "m3/s", "seasonal deviation"),
            _real("base_m3s", "m3/s", "constant: inflow = base + Σ psi·lag + noise_std·noise"),
            _real("noise_std_m3s", "m3/s", "deviation of what lags do not explain"),
        ),
    ),
    Table(
        "inflow_coefficients",
        "stochastic/inflow_coefficients.parquet",
        "Coefficients of the lags that are not 0.",
        (
            _HYDRO,
            _STAGE,
            _id("lag", "periods back, from 1"),
            _real("phi", "1", "of standardised inflows, a share of an annual term included"),
            _real("psi", "1", "of inflows in m3/s"),
        ),
    ),
    Table(
        "inflow_correlations",
        "stochastic/inflow_correlations.parquet",
        "Correlation of the noise of two plants, for every profile in use.",
        (
            _id("stage_id", "the first stage that uses the profile"),
            _HYDRO,
            _id("other_hydro_id", "the larger id of the two"),
            _real("correlation", "1", ""),
        ),
    ),
    Table(
        "inflow_tests",
        "stochastic/inflow_tests.parquet",
        "The noise with which the model gives the history, tested by plant and season. Written where the "
        "case has monthly seasons and a history without gaps; the model of a season is that of its first stage.",
        (
            _HYDRO,
            _id("season_id", ""),
            _id("order", "of the season's model"),
            _id("observations", "years with all lags"),
            _real("noise_mean", "1", "0 for a model that fits"),
            _real("noise_std", "1", "1 for a model that fits"),
            _real("noise_skewness", "1", "0 for normal noise, which is what is drawn"),
            _real("normality_p", "1", "probability of noise this far from normal, by Jarque and Bera"),
            _real("whiteness_q", "1", "portmanteau statistic of McLeod for periodic models, 15 lags"),
            _real("whiteness_p", "1", "probability of a statistic this large if the noise is white"),
        ),
    ),
    Table(
        "inflow_moments",
        "stochastic/inflow_moments.parquet",
        "Inflows of the openings against history. Not written where lags belong to periods of several stages, "
        "or nodes name the scenario that they see.",
        (
            _HYDRO,
            _STAGE,
            _real("history_mean_m3s", "m3/s", _OF_HISTORY),
            _real("history_std_m3s", "m3/s", _OF_HISTORY),
            _real("history_skewness", "1", _OF_HISTORY),
            _real("history_lag_correlation", "1", "with the month before"),
            _real("openings_mean_m3s", "m3/s", _OF_OPENINGS),
            _real("openings_std_m3s", "m3/s", "the same"),
            _real("openings_skewness", "1", "the same"),
            _real("openings_lag_correlation", "1", "with the stage before"),
            _real("noise_mean", "1", "of the stage's openings"),
            _real("noise_std", "1", "of the stage's openings"),
        ),
    ),
)
"""Tables of a case's uncertainty, written with those of its training."""

SIMULATION_TABLES = (
    Table(
        "scenarios",
        "simulation/scenarios.parquet",
        "Every path of the graph with its probability, where all are simulated. Else scenarios are equally likely.",
        (
            _SCENARIO,
            _real("probability", "1", "of the path: they sum to 1"),
            _real("cost", "$", "of all its stages, discounted to stage 0"),
        ),
    ),
    Table(
        "costs",
        "simulation/costs.parquet",
        "Cost of every stage of every scenario, split by origin. Amounts are undiscounted.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _real("discount_factor", "1", "from this stage back to stage 0"),
            _real("stage_cost", "$", "immediate cost: the sum of the parts below"),
            _real("future_cost", "$", "value of the policy at the outgoing state"),
            _real("thermal_cost", "$", ""),
            _real("deficit_cost", "$", "load not served"),
            _real("excess_cost", "$", ""),
            _real("exchange_cost", "$", ""),
            _real("spillage_cost", "$", ""),
            _real("turbined_cost", "$", ""),
            _real("diversion_cost", "$", ""),
            _real(
                "curtailment_cost", "$", "of non-controllable sources; negative: a reward for what is used"
            ),
            _real("contract_cost", "$", "imports paid for, less exports sold"),
            _real(
                "violation_cost", "$", "penalties of soft limits, inflow slack, evaporation and withdrawal"
            ),
            _real("generic_cost", "$", "penalties of generic constraints"),
        ),
    ),
    Table(
        "buses",
        "simulation/buses.parquet",
        "Load balance of every bus.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("bus_id", ""),
            _real("load_mw", "MW", "realised load"),
            _real("deficit_mw", "MW", "load not served, all segments"),
            _real("excess_mw", "MW", ""),
            _real("marginal_cost", "$/MWh", "dual of the load balance per MWh, undiscounted to the stage"),
        ),
    ),
    Table(
        "hydros",
        "simulation/hydros.parquet",
        "Operation of every hydro plant. Parallel blocks of a stage repeat its storage, inflow and water value.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("hydro_id", ""),
            _real(
                "storage_initial_hm3",
                "hm3",
                "at the start of the stage; of the block, where blocks follow each other",
            ),
            _real(
                "storage_final_hm3",
                "hm3",
                "at the end of the stage; of the block, where blocks follow each other",
            ),
            _real("inflow_m3s", "m3/s", "incremental inflow"),
            _real("turbined_m3s", "m3/s", ""),
            _real("spilled_m3s", "m3/s", ""),
            _real("diverted_m3s", "m3/s", ""),
            _real("outflow_m3s", "m3/s", "turbined + spilled; what is diverted leaves by another way"),
            _real("generation_mw", "MW", ""),
            _real("evaporated_m3s", "m3/s", ""),
            _real("withdrawn_m3s", "m3/s", ""),
            _real("inflow_slack_m3s", "m3/s", "water added so that the inflow is not negative"),
            _real("in_transit_hm3", "hm3", "on its way to the plant at the end of the stage, by travel time"),
            _real("violation", "mixed", "sum of the slacks of the plant's soft limits"),
            _real("water_value", "$/hm3", "dual of the water balance"),
        ),
    ),
    Table(
        "hydro_buses",
        "simulation/hydro_buses.parquet",
        "What every hydro plant gives to every bus that its unit groups feed.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("hydro_id", ""),
            _id("bus_id", ""),
            _real("turbined_m3s", "m3/s", "through the turbines on this bus"),
            _real("generation_mw", "MW", ""),
        ),
    ),
    Table(
        "thermals",
        "simulation/thermals.parquet",
        "Dispatch of every thermal plant.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("thermal_id", ""),
            _real("generation_mw", "MW", ""),
            _real("cost", "$", ""),
        ),
    ),
    Table(
        "exchanges",
        "simulation/exchanges.parquet",
        "Flow of every line.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("line_id", ""),
            _real("direct_mw", "MW", "from source to target"),
            _real("reverse_mw", "MW", "from target to source"),
            _real("net_mw", "MW", "direct − reverse"),
        ),
    ),
    Table(
        "non_controllables",
        "simulation/non_controllables.parquet",
        "Use of every non-controllable source.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("ncs_id", ""),
            _real("available_mw", "MW", "what the noise, or the schedule, lets the source give"),
            _real("generation_mw", "MW", ""),
            _real("curtailed_mw", "MW", "available − generation"),
        ),
    ),
    Table(
        "contracts",
        "simulation/contracts.parquet",
        "Energy bought and sold.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("contract_id", ""),
            _real("power_mw", "MW", "imported or exported, as the contract is"),
            _real("cost", "$", "negative: earned"),
        ),
    ),
    Table(
        "pumping",
        "simulation/pumping.parquet",
        "Pumping stations.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("pumping_station_id", ""),
            _real("pumped_m3s", "m3/s", "from the source to the destination reservoir"),
            _real("power_mw", "MW", "drawn from the bus"),
        ),
    ),
    Table(
        "generic_constraints",
        "simulation/generic_constraints.parquet",
        "Generic linear constraints: activity, slack and dual. Only blocks with a bound have rows.",
        (
            _SCENARIO,
            _STAGE,
            _NODE,
            _BLOCK,
            _HOURS,
            _id("constraint_id", ""),
            _real("activity", "mixed", "value of the expression"),
            _real("slack", "mixed", "violation paid for"),
            _real("dual", "$/unit", "cost of one more unit of the bound during the whole block"),
        ),
    ),
)

_DEPTH = _id("depth", "position on the scenario's path, from 0")

PROBLEM_TABLES = (
    Table(
        "paths",
        "simulation/paths.parquet",
        "Nodes that every scenario of a problem built in Python visited, and what they cost.",
        (
            _SCENARIO,
            _DEPTH,
            _id("node_id", "position of the node in the problem"),
            _id("opening", "opening that was drawn; −1 = noise from outside the support"),
            _real("discount_factor", "1", "from here back to the start"),
            _real("stage_cost", "as modelled", "immediate cost or reward, undiscounted"),
            _real("future_cost", "as modelled", "value of the policy at the outgoing state"),
        ),
    ),
    Table(
        "states",
        "simulation/states.parquet",
        "Outgoing states along the paths.",
        (_SCENARIO, _DEPTH, _id("state_id", "position of the state"), _real("value", "as modelled", "")),
    ),
    Table(
        "values",
        "simulation/values.parquet",
        "Recorded variables along the paths.",
        (_SCENARIO, _DEPTH, _id("column_id", "position in the record"), _real("value", "as modelled", "")),
    ),
)
"""Simulation tables of a problem that is not a power system."""

TABLES = (CONVERGENCE, TIMING, *MODEL_TABLES, *SIMULATION_TABLES, *PROBLEM_TABLES)
