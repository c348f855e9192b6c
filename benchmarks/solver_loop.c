/* The floor: chains of HiGHS solves from C, nothing around them. Compiled and called by solver_batch.py.
 *
 * One LP with all its pool rows, loaded once; per chain the incoming state, clearSolver and setBasis; per opening the row
 * bounds, run, solution and objective. `seconds` gets the thread's CPU time of all of it, loading excluded. */
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

typedef int32_t integer;
#define FIND(type, name, arguments) type(*name) arguments = (type(*) arguments)dlsym(library, "Highs_" #name)

int loop(const char *path, int chains, int openings, int num_col, int num_row, int num_nz, double offset,
         const double *cost, const double *col_lower, const double *col_upper, const double *row_lower,
         const double *row_upper, const integer *starts, const integer *rows, const double *values, int inputs,
         const integer *input_set, const double *x, int patched, const integer *row_set, const double *rhs,
         const integer *col_status, const integer *row_status, int reset, double *objective, double *col_value,
         double *col_dual, double *seconds)
{
    void *library = dlopen(path, RTLD_NOW);
    FIND(void *, create, (void));
    FIND(void, destroy, (void *));
    FIND(integer, passLp,
         (void *, integer, integer, integer, integer, integer, double, const double *, const double *, const double *,
          const double *, const double *, const integer *, const integer *, const double *));
    FIND(integer, setBoolOptionValue, (void *, const char *, integer));
    FIND(integer, setIntOptionValue, (void *, const char *, integer));
    FIND(integer, setDoubleOptionValue, (void *, const char *, double));
    FIND(integer, setStringOptionValue, (void *, const char *, const char *));
    FIND(integer, changeColsBoundsBySet, (void *, integer, const integer *, const double *, const double *));
    FIND(integer, changeRowsBoundsBySet, (void *, integer, const integer *, const double *, const double *));
    FIND(integer, clearSolver, (void *));
    FIND(integer, setBasis, (void *, const integer *, const integer *));
    FIND(integer, run, (void *));
    FIND(integer, getModelStatus, (const void *));
    FIND(double, getObjectiveValue, (const void *));
    FIND(integer, getSolution, (const void *, double *, double *, double *, double *));
    void *highs = create();
    struct timespec begin, end;
    setBoolOptionValue(highs, "output_flag", 0);
    setStringOptionValue(highs, "solver", "simplex");
    setStringOptionValue(highs, "presolve", "off");
    setStringOptionValue(highs, "parallel", "off");
    setIntOptionValue(highs, "threads", 1);
    setIntOptionValue(highs, "simplex_strategy", 1);
    setIntOptionValue(highs, "simplex_scale_strategy", 0);
    setIntOptionValue(highs, "simplex_dual_edge_weight_strategy", 1);
    setIntOptionValue(highs, "simplex_price_strategy", 1);
    setDoubleOptionValue(highs, "dual_simplex_cost_perturbation_multiplier", 0.0);
    setBoolOptionValue(highs, "no_unnecessary_rebuild_refactor", 0);
    setDoubleOptionValue(highs, "primal_feasibility_tolerance", 1e-9);
    setDoubleOptionValue(highs, "dual_feasibility_tolerance", 1e-9);
    passLp(highs, num_col, num_row, num_nz, 1, 1, offset, cost, col_lower, col_upper, row_lower, row_upper, starts, rows,
           values);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    int failed = 0;
    for (int i = 0; i < chains; i++) {
        changeColsBoundsBySet(highs, inputs, input_set, x + i * inputs, x + i * inputs);
        for (int j = 0; j < openings; j++) {
            changeRowsBoundsBySet(highs, patched, row_set, rhs + j * patched, rhs + j * patched);
            if (j == 0 && reset) {
                clearSolver(highs);
                setBasis(highs, col_status + (int64_t)i * num_col, row_status + (int64_t)i * num_row);
            }
            run(highs);
            failed += getModelStatus(highs) != 7;
            getSolution(highs, col_value, col_dual, 0, 0);
            objective[i * openings + j] = getObjectiveValue(highs);
        }
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    *seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    destroy(highs);
    return failed;
}
