/* Pool rows of a chain: those it begins with, those it takes in, and HiGHS's LP with them. */
#ifndef PYCOBRE_LP_ROWS_H
#define PYCOBRE_LP_ROWS_H

#include "lp_session.h"

enum { OF_CHAIN, OF_OPENING, DECIDED }; /* who knows an outgoing state */

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

/* Add to `values` what the pool rows are at the stretches of one kind, but for the stretch `except`. */
static void add_parts(const lp_session *s, const pool_view *pool, int8_t kind, int32_t except, double *values) {
    const lp_model *m = s->model;
    for (int32_t part = 0; part < m->part_kind_size; part++)
        if (m->part_kind[part] == kind && part != except)
            pool_add(pool, m->part_starts[part], m->part_starts[part + 1], s->state, values);
}

/* The pool as rows over the last stretch that is decided: the others' share is in their intercepts. What a chain or an
 * opening knows is computed once for each. */
static pool_view decided_rows(lp_session *s, const pool_view *pool) {
    const lp_model *m = s->model;
    const size_t bytes = (size_t)pool->count * sizeof(double);
    int32_t last = m->part_kind_size - 1, others = 0;
    if (last <= 0 && (last < 0 || m->part_kind[0] == DECIDED))
        return *pool;
    while (last >= 0 && m->part_kind[last] != DECIDED)
        last--;
    for (int32_t part = 0; part < last; part++)
        others += m->part_kind[part] == DECIDED;
    if (!s->chain_known) {
        memcpy(s->of_chain, pool->intercept, bytes);
        add_parts(s, pool, OF_CHAIN, -1, s->of_chain);
        s->chain_known = true;
    }
    if (!s->opening_known) {
        memcpy(s->of_opening, s->of_chain, bytes);
        add_parts(s, pool, OF_OPENING, -1, s->of_opening);
        s->opening_known = true;
    }
    pool_view rows = *pool;
    rows.intercept = s->of_opening;
    if (others > 0) {
        memcpy(s->of_round, s->of_opening, bytes);
        add_parts(s, pool, DECIDED, last, s->of_round);
        rows.intercept = s->of_round;
    }
    rows.width = last < 0 ? 0 : m->part_starts[last + 1] - m->part_starts[last];
    rows.slope += last < 0 ? 0 : m->part_starts[last];
    return rows;
}

/* Pool rows that the outgoing state violates, the worst few, in `found`. */
static int32_t find_violated(lp_session *s, const lp_block *b, double head) {
    if (b->pool == NULL || !b->lazy)
        return 0;
    const double size = fabs(head) > 1.0 ? fabs(head) : 1.0;
    const pool_view rows = decided_rows(s, b->pool);
    const double *point = s->state + (rows.slope - b->pool->slope);
    const int32_t n = pool_best(&rows, point, s->is_present, b->rows_per_round, head + b->pool_tolerance * size,
                                false, s->found, s->found_values);
    sort_slots(s->found, n);
    return n;
}

#endif
