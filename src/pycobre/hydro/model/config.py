"""What a run should do: training, simulation, modelling choices, estimation, policy files, exports."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from pycobre.hydro.model.record import Tagged, record

__all__ = [
    "BoundStalling",
    "ByNode",
    "ByScenario",
    "CheckpointingConfig",
    "ClassScheme",
    "Config",
    "CutSelectionConfig",
    "DominationSelection",
    "DynamicSelection",
    "Enumerated",
    "EstimationConfig",
    "ExportsConfig",
    "FileOpenings",
    "GapRule",
    "GeneratedOpenings",
    "InflowNonNegativity",
    "IterationLimit",
    "Level1Selection",
    "LipschitzConfig",
    "Lml1Selection",
    "ModelingConfig",
    "ParallelismConfig",
    "PolicyBoundary",
    "PolicyConfig",
    "SampledPasses",
    "SampledScenarios",
    "ScenarioSource",
    "SimulationConfig",
    "SolverProfile",
    "StoppingRule",
    "TimeLimit",
    "TrainingConfig",
    "TrainingSolverConfig",
    "UpperBoundEvaluation",
    "YearRange",
]

Scheme = Literal["in_sample", "out_of_sample", "external", "historical"]


@record
class SampledPasses:
    forward_passes: int
    method: Literal["sampled"] = "sampled"


@record
class SampledScenarios:
    num_scenarios: int
    method: Literal["sampled"] = "sampled"


@record
class Enumerated:
    method: Literal["enumerated"] = "enumerated"


@record
class IterationLimit:
    limit: int
    type: Literal["iteration_limit"] = "iteration_limit"


@record
class TimeLimit:
    seconds: float
    type: Literal["time_limit"] = "time_limit"


@record
class BoundStalling:
    iterations: int
    tolerance: float
    type: Literal["bound_stalling"] = "bound_stalling"


@record
class GapRule:
    """`tolerance` in currency, `relative_tolerance` in percent of the lower bound."""

    tolerance: float | None = None
    relative_tolerance: float | None = None
    type: Literal["gap"] = "gap"


StoppingRule = Annotated[IterationLimit | TimeLimit | BoundStalling | GapRule, Tagged("type")]


@record
class ClassScheme:
    scheme: Scheme


@record
class YearRange:
    """Inclusive; the keys in the file are `from` and `to`."""

    from_: int
    to: int


@record
class GeneratedOpenings:
    source: Literal["generated"] = "generated"


@record
class FileOpenings:
    source: Literal["file"] = "file"


@record
class ScenarioSource:
    """Where forward draws come from, by class of noise; None is in-sample."""

    seed: int | None = None
    inflow: ClassScheme | None = None
    load: ClassScheme | None = None
    ncs: ClassScheme | None = None
    openings: Annotated[GeneratedOpenings | FileOpenings, Tagged("source")] | None = None
    historical_years: tuple[int, ...] | YearRange | None = None


@record
class Level1Selection:
    check_frequency: int = 5
    tie_tolerance: float = 1e-10
    method: Literal["level1"] = "level1"


@record
class Lml1Selection:
    check_frequency: int = 5
    tie_tolerance: float = 1e-10
    method: Literal["lml1"] = "lml1"


@record
class DominationSelection:
    domination_tolerance: float
    check_frequency: int = 5
    method: Literal["domination"] = "domination"


@record
class DynamicSelection:
    start_iteration: int = 2
    seed_window: int = 5
    max_added_per_round: int = 10
    violation_tolerance: float = 1e-10
    candidate_recency: int | None = None
    method: Literal["dynamic"] = "dynamic"


@record
class CutSelectionConfig:
    selection: (
        Annotated[
            Level1Selection | Lml1Selection | DominationSelection | DynamicSelection,
            Tagged("method"),
        ]
        | None
    ) = None
    max_active_per_stage: int | None = None
    row_activity_tolerance: float | None = None


@record
class ByScenario:
    method: Literal["by_scenario"] = "by_scenario"


@record
class ByNode:
    block_size: int | None = None
    method: Literal["by_node"] = "by_node"


@record
class ParallelismConfig:
    backward_scheduler: Annotated[ByScenario | ByNode, Tagged("method")] = field(default_factory=ByScenario)


@record
class SolverProfile:
    """LP settings of the peer; accepted, and without effect here: they change no result."""

    cost_perturbation: float | None = None
    dual_edge_weight: Literal["devex", "steepest_edge", "dantzig"] | None = None
    dual_feasibility_tolerance: float | None = None
    factor_pivot_threshold: float | None = None
    presolve: Literal["on", "off", "choose"] | None = None
    price: Literal["row", "row_hyper_sparse"] | None = None
    primal_feasibility_tolerance: float | None = None
    refactor_error_tolerance: float | None = None
    scale: Literal["off", "solver_scaling"] | None = None
    simplex_update_limit: int | None = None
    steepest_edge_devex_fallback_threshold: float | None = None
    use_warm_start: bool | None = None


@record
class TrainingSolverConfig:
    retry_max_attempts: int = 5
    retry_time_budget_seconds: float = 30.0
    forward: SolverProfile | None = None
    backward: SolverProfile | None = None


@record
class InteriorPointsConfig:
    """Cuts at interior points: the schedule of `InteriorPoints`; `initial` 0 makes all cuts at the trial points,
    as Cobre does. Not known to Cobre."""

    initial: float = 0.5
    decay: Literal["geometric", "harmonic", "sqrt"] = "geometric"
    last: int | None = None
    graded: bool = True
    least_states: int = 1


@record
class GrowingTrajectoriesConfig:
    """`initial` forward passes for `every` iterations, then twice as many, up to all. Not known to Cobre."""

    initial: int = 1
    every: int = 5


@record
class TrainingConfig:
    """How the policy is made. `tree_seed` None means 42; it also drives in-sample forward draws."""

    selection: Annotated[SampledPasses | Enumerated, Tagged("method")]
    stopping_rules: tuple[StoppingRule, ...]
    enabled: bool = True
    stopping_mode: Literal["any", "all"] = "any"
    tree_seed: int | None = None
    scenario_source: ScenarioSource | None = None
    cut_selection: CutSelectionConfig = field(default_factory=CutSelectionConfig)
    interior_points: InteriorPointsConfig | None = None
    growing_trajectories: GrowingTrajectoriesConfig | None = None
    solver: TrainingSolverConfig = field(default_factory=TrainingSolverConfig)
    parallelism: ParallelismConfig = field(default_factory=ParallelismConfig)


@record
class SimulationConfig:
    enabled: bool = False
    selection: Annotated[SampledScenarios | Enumerated, Tagged("method")] | None = None
    scenario_source: ScenarioSource | None = None
    io_channel_capacity: int = 64
    solver: SolverProfile | None = None


@record
class InflowNonNegativity:
    method: Literal["none", "truncation", "penalty", "truncation_with_penalty"] = "penalty"


@record
class ModelingConfig:
    inflow_non_negativity: InflowNonNegativity = field(default_factory=InflowNonNegativity)
    cost_scale_factor: float | None = None


@record
class EstimationConfig:
    """How PAR models are fitted where only history is given."""

    max_order: int = 6
    order_selection: Literal["pacf", "pacf_annual"] = "pacf"
    min_observations_per_season: int = 30
    max_coefficient_magnitude: float | None = None


@record
class PolicyBoundary:
    path: str
    strict: bool = False


@record
class CheckpointingConfig:
    enabled: bool | None = None
    initial_iteration: int | None = None
    interval_iterations: int | None = None
    store_basis: bool | None = None
    compress: bool | None = None


@record
class PolicyConfig:
    path: str = "./policy"
    mode: Literal["fresh", "warm_start", "resume"] = "fresh"
    boundary: PolicyBoundary | None = None
    checkpointing: CheckpointingConfig = field(default_factory=CheckpointingConfig)


@record
class ExportsConfig:
    states: bool = False
    stochastic: bool = False
    fpha_deviation_points: bool = False


@record
class LipschitzConfig:
    mode: str | None = None
    fallback_value: float | None = None
    scale_factor: float | None = None


@record
class UpperBoundEvaluation:
    enabled: bool | None = None
    initial_iteration: int | None = None
    interval_iterations: int | None = None
    lipschitz: LipschitzConfig = field(default_factory=LipschitzConfig)


@record
class Config:
    training: TrainingConfig
    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    modeling: ModelingConfig = field(default_factory=ModelingConfig)
    estimation: EstimationConfig = field(default_factory=EstimationConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    exports: ExportsConfig = field(default_factory=ExportsConfig)
    upper_bound_evaluation: UpperBoundEvaluation = field(default_factory=UpperBoundEvaluation)
