"""The benchmarks of a checkout: `python -m benchmarks [NAME …]`, or one of them by `python -m benchmarks.NAME`.

harness             what they share: catalogue, driver, report, documents, timing

against_cobre       training end to end against Cobre (cobre_cases, cobre_runs, cobre_environment; one process per
                    run: cobre_child, pycobre_child)
cobre_national      CPU to Cobre's bounds at production size: a national study, 60 and 160 plants
cobre_examples      bounds of example cases against Cobre's, iteration by iteration
cobre_states        stage LPs and cuts against Cobre's at the same states (cobre_policy: what its run leaves; one
                    process for it: cobre_states_child)
cobre_steps         validate, load, build, one iteration against Cobre (one process per step: cobre_steps_child)
run_start           from the call to the first iteration
run_workers         two workers against one process
checkpoint          checkpoints as a share of an iteration
run_watched         a run that is watched in a terminal, against one that nobody watches
run_records         events, status and default checkpoints as a share of an iteration
policy_load         reading a large policy file
cli_start           `pycobre --help` against a bare interpreter
report_size         the report of 2,000 scenarios
mcp_server          start of the MCP server, queries of 36 million rows
import_time         importing the package
case_loading        reading and checking large cases
cluster             larger machines, by a model with measured costs (cluster_model, cluster_costs)
cluster_study       a whole national study on larger machines, by the same model
comm_shm            shared memory against two MPIs (comm_common: what the three share)
comm_tcp            sockets against two MPIs and gloo
comm_tcp_auth       what authenticated messages and TLS cost
comm_mpi            the mpi backend against mpi4py alone
local_overhead      a collective of one process against a copy
solver_batch        a batch of LPs against a loop in C (solver_models: LPs to measure on)
solver_scaling      threads and processes solving LPs
solver_tableau      the dense tableau against HiGHS, by size of LP
solver_kernel       the basis kernel against HiGHS, by size of LP
sddp_cuts           cost of an iteration by how cuts are kept (sddp_systems: problems to measure on)
sddp_interior       bounds with cuts at interior points, by schedule
sddp_trajectories   CPU to a bound with a growing number of trajectories
sddp_memory         memory of a training against its estimate
sddp_study_memory   memory of a national study with all its cuts
sddp_scaling        cost against stages, passes, openings, states
sddp_ranks          strong and weak scaling over ranks
"""
