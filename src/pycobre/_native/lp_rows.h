/* Pool rows of a chain: those it begins with, those it takes in, and HiGHS's LP with them. */
#ifndef PYCOBRE_LP_ROWS_H
#define PYCOBRE_LP_ROWS_H

#include "lp_session.h"

static bool mark_present(lp_session *s, const int32_t *slots, int32_t n) {
    if (!reserve_rows(s, s->num_present + n))
        return false;
    for (int32_t r = 0; r < n; r++) {
        s->present[s->num_present++] = slots[r];
        s->is_present[slots[r]] = 1;
    }
    return true;
}

/* Append pool rows to HiGHS's LP. */
static bool add_to_highs(lp_session *s, const pool_view *pool, const int32_t *slots, int32_t n) {
    const lp_model *m = s->model;
    const int32_t width = m->outputs_size + 1;
    if (n == 0)
        return true;
    if (!reserve_found(s, n))
        return false;
    for (int32_t r = 0; r < n; r++) {
        const double *slope = pool->slope + (size_t)slots[r] * (size_t)pool->width;
        int32_t *columns = s->add_columns + (size_t)r * (size_t)width;
        double *coefficients = s->add_coefficients + (size_t)r * (size_t)width;
        s->add_starts[r] = r * width;
        s->add_lower[r] = pool->intercept[slots[r]] * m->pool_factor;
        s->add_upper[r] = INFINITY;
        columns[0] = m->head;
        coefficients[0] = 1.0;
        for (int32_t k = 0; k < m->outputs_size; k++) {
            columns[k + 1] = m->outputs[k];
            coefficients[k + 1] = slope[k] * m->slope_factor[k];
        }
    }
    s->highs_rows += n;
    return s->lib->addRows(s->highs, n, s->add_lower, s->add_upper, n * width, s->add_starts, s->add_columns,
                           s->add_coefficients) >= 0;
}

/* The pool rows that a chain begins with. */
static bool first_rows(lp_session *s, const lp_block *b) {
    const pool_view *pool = b->pool;
    const int32_t i = s->chain, at = b->starts > 1 ? i : 0;
    const int32_t most = b->rows_per_round > b->seed_rows ? b->rows_per_round : b->seed_rows;
    const int32_t stored = b->starts > 0 ? b->start_pool[at + 1] - b->start_pool[at] : 0;
    if (!reserve_found(s, !b->lazy ? pool->count : stored > most ? stored : most))
        return false;
    int32_t n = 0;
    if (!b->lazy) {
        for (int32_t slot = 0; slot < pool->count; slot++)
            if (pool->active == NULL || pool->active[slot])
                s->found[n++] = slot;
        return mark_present(s, s->found, n);
    }
    if (b->starts > 0) {
        for (int32_t e = b->start_pool[at]; e < b->start_pool[at + 1]; e++) {
            const int32_t slot = b->start_slots[e];
            if (slot < pool->count && (pool->active == NULL || pool->active[slot]))
                s->found[n++] = slot;
        }
        if (!mark_present(s, s->found, n))
            return false;
    }
    if (b->seed != NULL && b->seed_rows > 0) {
        n = pool_best(pool, b->seed + (size_t)i * (size_t)s->model->outputs_size, s->is_present, b->seed_rows,
                      -INFINITY, true, s->found, s->found_values);
        sort_slots(s->found, n);
        return mark_present(s, s->found, n);
    }
    return true;
}

/* Make HiGHS's LP that of this chain: base rows, incoming state, the pool rows present. */
static bool sync_highs(lp_session *s, const lp_block *b) {
    const lp_model *m = s->model;
    if (s->dirty) {
        if (s->lib->passLp(s->highs, m->num_col, m->num_row, m->values_size, 1, 1, m->offset, m->cost, m->col_lower,
                           m->col_upper, m->row_lower, m->row_upper, m->starts, m->rows, m->values) < 0)
            return false;
        s->dirty = s->holds_pool = false;
        s->highs_rows = 0;
    }
    if (s->highs_rows > 0 && !s->holds_pool) {
        if (s->lib->deleteRowsByRange(s->highs, m->num_row, m->num_row + s->highs_rows - 1) < 0)
            return false;
        s->highs_rows = 0;
    }
    if (m->inputs_size > 0) {
        const double *x = b->x + (size_t)s->chain * (size_t)m->inputs_size;
        double *bounds = s->col_low + m->col_set_size;
        for (int32_t k = 0; k < m->inputs_size; k++)
            bounds[k] = x[m->input_at[k]] * m->input_factor[m->input_at[k]];
        if (s->lib->changeColsBoundsBySet(s->highs, m->inputs_size, m->input_set, bounds, bounds) < 0)
            return false;
    }
    if (b->pool == NULL || s->holds_pool)
        return true;
    s->holds_pool = !b->lazy;
    return add_to_highs(s, b->pool, s->present, s->num_present);
}

/* Pool rows that the outgoing state violates, the worst few, in `found`. */
static int32_t find_violated(lp_session *s, const lp_block *b, double head) {
    if (b->pool == NULL || !b->lazy)
        return 0;
    const double size = fabs(head) > 1.0 ? fabs(head) : 1.0;
    const int32_t n = pool_best(b->pool, s->state, s->is_present, b->rows_per_round, head + b->pool_tolerance * size,
                                false, s->found, s->found_values);
    sort_slots(s->found, n);
    return n;
}

#endif
