/* A block of chains: the compiled twin of pycobre/solver/chains.py.
 *
 * Same calls on HiGHS, same pivots, same numbers, same order, hence same bits; read that file for what is done and why.
 * Nothing here touches Python. */
#ifndef PYCOBRE_LP_CHAIN_H
#define PYCOBRE_LP_CHAIN_H

#include "lp_basis.h"
#include "lp_certificate.h"
#include "lp_patch.h"
#include "lp_rows.h"

enum { HIGHS_OPTIMAL = 7 };
enum { POOL_ROWS_KEPT = 32 }; /* non-binding pool rows beyond these leave the tableau before the next opening */
enum { TABLEAU_PASSES = 3 };  /* times that one solve may build its tableau anew before HiGHS takes over */

/* A new chain: its first pool rows, and its tableau or HiGHS's LP. */
static bool chain_begin(lp_session *s, const lp_block *b, int32_t i) {
    const lp_model *m = s->model;
    for (int32_t r = 0; r < s->num_present; r++)
        s->is_present[s->present[r]] = 0;
    s->num_present = 0;
    s->chain = i;
    s->chain_known = false;
    s->dirty |= s->spoiled;
    s->spoiled = false;
    if (b->pool != NULL && !first_rows(s, b))
        return false;
    const int64_t rows = m->num_row, all = rows + (b->lazy ? 0 : s->num_present), most = b->tableau_entries;
    const bool small = rows * m->active_size <= most && all * m->active_size <= 2 * most;
    const bool medium = rows <= b->kernel_rows && (b->lazy || s->num_present <= POOL_ROWS_KEPT);
    int32_t missing = 0;
    s->engine = m->coef_row_size > 0 ? BY_HIGHS : small ? BY_TABLEAU : medium ? BY_KERNEL : BY_HIGHS;
    if (s->engine == BY_HIGHS)
        return sync_highs(s, b);
    return s->ready = begin_engine(s, b, start_statuses(s, b, &missing));
}

static void count_iterations(lp_session *s) {
    highs_int iterations = 0;
    s->lib->getIntInfoValue(s->highs, "simplex_iteration_count", &iterations);
    s->run_iterations += iterations;
}

/* θ and the outgoing state, projected into its bounds, from scaled column values. */
static double read_state(lp_session *s, const double *z) {
    const lp_model *m = s->model;
    for (int32_t k = 0; k < m->outputs_size; k++) {
        double value = z[m->outputs[k]] * m->output_factor[k];
        value = value < s->out_lower[k] ? s->out_lower[k] : value > s->out_upper[k] ? s->out_upper[k] : value;
        s->state[k] = value + 0.0;
    }
    return m->head >= 0 ? (z[m->head] + 0.0) * m->head_factor : 0.0;
}

/* Write one solve from scaled values; `row_dual` may be NULL where the block asks for none. Zeros lose their sign first:
 * it depends on which zeros a tableau skips. */
static void write_results(lp_session *s, const lp_block *b, double objective, double head, const double *z,
                          const double *col_dual, const double *row_dual) {
    const lp_model *m = s->model;
    const size_t at = (size_t)s->chain * (size_t)b->openings + (size_t)s->opening;
    const double inverse_cost = 1.0 / m->cost_scale;
    b->objective[at] = objective * inverse_cost;
    for (int32_t k = 0; k < m->inputs_size; k++)
        b->gradient[at * (size_t)m->inputs_size + (size_t)k] = (col_dual[m->inputs[k]] + 0.0) * m->gradient_factor[k];
    memcpy(b->output + at * (size_t)m->outputs_size, s->state, (size_t)m->outputs_size * sizeof(double));
    b->head[at] = head;
    b->iterations[at] = s->run_iterations;
    b->rounds[at] = s->run_rounds;
    b->retries[at] = s->run_retries;
    b->by_highs[at] = s->run_by_highs;
    b->rejected[at] = s->run_rejected;
    b->certified[at] = s->run_certified;
    if (b->primal == NULL)
        return;
    for (int32_t c = 0; c < m->num_col; c++) {
        const size_t to = at * (size_t)m->num_col + (size_t)c;
        b->primal[to] = (z[c] + 0.0) * m->col_scale[c];
        b->col_dual[to] = (col_dual[c] + 0.0) * (inverse_cost / m->col_scale[c]);
    }
    for (int32_t r = 0; r < m->num_row; r++)
        b->row_dual[at * (size_t)m->num_row + (size_t)r] = (row_dual[r] + 0.0) * (m->row_scale[r] * inverse_cost);
}

/* How an opening ended. */
typedef enum { OPENING_SOLVED, OPENING_FAILED, OPENING_NO_MEMORY, OPENING_LEFT_TO_HIGHS } opening_end;

/* Non-binding pool rows beyond the kept number leave, the oldest first. */
static void drop_loose_rows(lp_session *s) {
    tableau *t = &s->tab;
    int32_t spare = s->num_present - POOL_ROWS_KEPT, kept = 0;
    for (int32_t p = 0; p < t->pool_rows; p++) {
        const int32_t slot = t->slot[p];
        if (slot < 0)
            continue;
        if (spare > 0 && t->place[pool_variable(t, p)] >= 0) {
            tableau_drop_row(t, p);
            s->is_present[slot] = 0;
            spare--;
        } else {
            s->present[kept++] = slot;
        }
    }
    s->num_present = kept;
}

/* Writes the answer that the tableau or the kernel has proved, and keeps the basis of a first opening. */
static opening_end write_answer(lp_session *s, const lp_block *b, const double *costs, const double *z,
                                const double *dual) {
    const lp_model *m = s->model;
    const double offset = m->offset_from >= 0 ? s->vector[m->offset_from] * m->cost_scale : m->offset;
    const double head = read_state(s, z);
    double cost;
    multiply(costs, 1, padded(m->num_col), z, &cost);
    write_results(s, b, cost + offset, head, z, dual, s->row_dual);
    if (s->opening > 0 || b->basis_col == NULL)
        return OPENING_SOLVED;
    engine_statuses(s);
    return keep_basis(s, b) ? OPENING_SOLVED : OPENING_NO_MEMORY;
}

static opening_end solve_by_tableau(lp_session *s, const lp_block *b) {
    tableau *t = &s->tab;
    const lp_model *m = s->model;
    const double primal = b->primal_tolerance, dual = b->dual_tolerance;
    const int32_t size = 50 + 2 * (m->num_row + t->cols);
    const int32_t limit = size < b->iteration_limit ? size : b->iteration_limit;
    t->pivots = 0;
    if (b->lazy && s->num_present > POOL_ROWS_KEPT)
        drop_loose_rows(s);
    if (!patch_tableau(s, b))
        return OPENING_LEFT_TO_HIGHS;
    for (int32_t rebuilt = 0;;) {
        const bool feasible = iterate(t, primal, dual, limit);
        if (!feasible) {
            s->run_iterations = t->pivots;
            return OPENING_LEFT_TO_HIGHS;
        }
        read_columns(t);
        const int32_t n = find_violated(s, b, read_state(s, t->z));
        if (n > 0) {
            if (!mark_present(s, s->found, n))
                return OPENING_NO_MEMORY;
            for (int32_t k = 0; k < n; k++)
                if (!tableau_add_row(t, b->pool, s->found[k]))
                    return OPENING_NO_MEMORY;
            s->run_rounds++;
            continue;
        }
        if (t->moved)
            recompute(t);
        bool good = choose_row(t, primal) < 0 && dual_feasible(t, dual);
        if (good) {
            read_columns(t);
            good = certify(t, b->pool);
        }
        if (good)
            break;
        /* The tableau has drifted, or bounds have: build it anew, a few times at most. */
        if (rebuilt++ == TABLEAU_PASSES || !refactor(t, b->pool) || !set_nonbasic_values(t, dual)) {
            s->run_iterations = t->pivots;
            return OPENING_LEFT_TO_HIGHS;
        }
    }
    s->run_iterations = t->pivots;
    if (b->row_dual != NULL)
        for (int32_t r = 0; r < m->num_row; r++)
            s->row_dual[r] = logical_dual(t, row_variable(t, r));
    return write_answer(s, b, t->cost, t->z, t->dual);
}

/* Non-binding pool rows beyond the kept number leave the kernel, the oldest first. */
static void drop_loose_kernel_rows(lp_session *s) {
    kernel *t = &s->ker;
    int32_t spare = s->num_present - POOL_ROWS_KEPT, kept = 0;
    for (int32_t p = 0; p < t->pool_rows; p++) {
        const int32_t slot = t->slot[p];
        if (slot < 0)
            continue;
        if (spare > 0 && t->row_pos[s->model->num_row + p] < 0) {
            kernel_drop_row(t, p);
            s->is_present[slot] = 0;
            spare--;
        } else {
            s->present[kept++] = slot;
        }
    }
    s->num_present = kept;
}

/* Whether the kernel's answer is optimal for the LP itself, all values computed anew. */
static bool kernel_proved(lp_session *s, const lp_block *b) {
    kernel *t = &s->ker;
    if (s->reject_next > 0) /* a test asks for it */
        return s->reject_next--, false;
    if (t->changed)
        kernel_recompute(t);
    if (!kernel_primal_feasible(t))
        return false;
    kernel_compute_reduced_costs(t);
    if (!kernel_dual_feasible(t, b->dual_tolerance))
        return false;
    kernel_read_columns(t);
    kernel_read_duals(t, b->pool);
    return kernel_certify(t, b->pool);
}

static opening_end solve_by_kernel(lp_session *s, const lp_block *b) {
    kernel *t = &s->ker;
    const lp_model *m = s->model;
    const double dual = b->dual_tolerance;
    const int32_t size = 50 + 2 * (m->num_row + m->active_size);
    const int32_t limit = size < b->iteration_limit ? size : b->iteration_limit;
    t->primal_tolerance = b->primal_tolerance;
    t->pivots = 0;
    if (b->lazy && s->num_present > POOL_ROWS_KEPT)
        drop_loose_kernel_rows(s);
    if (!patch_kernel(s, b))
        return OPENING_LEFT_TO_HIGHS;
    for (int32_t rebuilt = 0;;) {
        const bool feasible = kernel_iterate(t, b->pool, dual, limit);
        s->run_iterations = t->pivots;
        if (!feasible)
            return OPENING_LEFT_TO_HIGHS;
        kernel_read_columns(t);
        const int32_t n = find_violated(s, b, read_state(s, t->z));
        if (n > 0) {
            if (!mark_present(s, s->found, n))
                return OPENING_NO_MEMORY;
            for (int32_t k = 0; k < n; k++)
                if (!kernel_add_row(t, b->pool, s->found[k]))
                    return OPENING_NO_MEMORY;
            s->run_rounds++;
            continue;
        }
        if (kernel_proved(s, b))
            break;
        /* The inverse has drifted, or bounds have: compute it anew, a few times at most. */
        if (rebuilt++ == TABLEAU_PASSES || !kernel_renew(t, b->pool, dual))
            return OPENING_LEFT_TO_HIGHS;
    }
    if (b->row_dual != NULL)
        for (int32_t r = 0; r < m->num_row; r++)
            s->row_dual[r] = t->price[r];
    return write_answer(s, b, t->cost, t->z, t->dual);
}

/* HiGHS's LP and basis for an opening that it begins. */
static bool begin_highs(lp_session *s, const lp_block *b) {
    int32_t missing = 0;
    bool known = false;
    if (s->engine != BY_HIGHS) {
        if (!sync_highs(s, b) || !patch_highs(s))
            return false;
        if (s->ready) {
            engine_statuses(s);
            known = true;
        } else {
            known = start_statuses(s, b, &missing);
        }
        reset_highs(s, known, missing);
        return true;
    }
    if (!patch_highs(s))
        return false;
    if (s->opening == 0) {
        known = start_statuses(s, b, &missing);
        reset_highs(s, known, missing);
    }
    return true;
}

/* Solve opening j of the current chain; `resumed` continues one whose last run the recovery has solved. */
static opening_end solve_opening(lp_session *s, const lp_block *b, int32_t j, bool resumed) {
    s->opening = j;
    if (!resumed) {
        s->opening_known = false;
        s->run_iterations = s->run_rounds = s->run_retries = 0;
        s->run_rejected = 0;
        s->run_by_highs = false;
        s->run_certified = true;
        read_patch(s, b, j);
        if (s->engine != BY_HIGHS && s->ready) {
            const opening_end end = s->engine == BY_KERNEL ? solve_by_kernel(s, b) : solve_by_tableau(s, b);
            if (end != OPENING_LEFT_TO_HIGHS)
                return end;
        }
        s->run_by_highs = true;
        if (!begin_highs(s, b))
            return OPENING_FAILED;
    }
    for (;; resumed = false) {
        if (!resumed) {
            s->lib->run(s->highs);
            count_iterations(s);
            if (s->lib->getModelStatus(s->highs) != HIGHS_OPTIMAL)
                return OPENING_FAILED;
        }
        s->lib->getSolution(s->highs, s->col_value, s->col_dual, NULL, s->row_dual);
        const double head = read_state(s, s->col_value);
        const int32_t n = find_violated(s, b, head);
        if (n == 0) {
            const answer_end answer = judge_answer(s, b);
            if (answer == ANSWER_NO_MEMORY)
                return OPENING_NO_MEMORY;
            if (answer == ANSWER_REJECTED) {
                s->lib->clearSolver(s->highs);
                continue;
            }
            const bool basis = j == 0 && b->basis_col != NULL;
            write_results(s, b, s->lib->getObjectiveValue(s->highs), head, s->col_value, s->col_dual, s->row_dual);
            if (basis || s->engine != BY_HIGHS)
                s->lib->getBasis(s->highs, s->col_status, s->row_status);
            if (s->engine != BY_HIGHS && j + 1 < b->openings)
                s->ready = begin_engine(s, b, true);
            return !basis || keep_basis(s, b) ? OPENING_SOLVED : OPENING_NO_MEMORY;
        }
        if (!mark_present(s, s->found, n) || !add_to_highs(s, b->pool, s->found, n))
            return OPENING_NO_MEMORY;
        s->run_rounds++;
    }
}

#endif
