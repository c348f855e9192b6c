/* One opening's numbers: read from its patch vector, written into HiGHS's LP or into the tableau. */
#ifndef PYCOBRE_LP_PATCH_H
#define PYCOBRE_LP_PATCH_H

#include "lp_session.h"

enum { SIDE_LOWER = 1, SIDE_UPPER = 2 };

static const double *patch_vector(const lp_session *s, const lp_block *b, int32_t j) {
    const size_t before = b->values_per_chain ? (size_t)s->chain * (size_t)b->openings : 0;
    return b->values + (before + (size_t)j) * (size_t)b->plan;
}

/* One opening's numbers: scaled bounds and costs of the patched places, and the outputs' own bounds. */
static void read_patch(lp_session *s, const lp_block *b, int32_t j) {
    const lp_model *m = s->model;
    const double *v = s->vector = patch_vector(s, b, j);
    const double *x = b->x + (size_t)s->chain * (size_t)m->inputs_size;
    memcpy(s->lower, m->row_set_lower, (size_t)m->row_set_size * sizeof(double));
    memcpy(s->upper, m->row_set_upper, (size_t)m->row_set_size * sizeof(double));
    for (int32_t p = 0; p < m->row_from_size; p++) {
        if (m->row_sides[p] & SIDE_LOWER)
            s->lower[m->row_at[p]] = v[m->row_from[p]];
        if (m->row_sides[p] & SIDE_UPPER)
            s->upper[m->row_at[p]] = v[m->row_from[p]];
    }
    for (int32_t f = 0; f < m->floor_limit_size; f++) {
        const int32_t at = m->floor_at[f];
        double reached = isfinite(s->lower[at]) ? s->lower[at] : s->upper[at];
        for (int32_t e = m->floor_starts[f]; e < m->floor_starts[f + 1]; e++)
            reached += m->floor_coef[e] * x[m->floor_input[e]];
        const double missing = m->floor_limit[f] - reached;
        s->shortfall[f] = missing > 0.0 ? missing : 0.0;
    }
    for (int32_t e = 0; e < m->effect_floor_size; e++) {
        const double add = m->effect_multiplier[e] * s->shortfall[m->effect_floor[e]];
        s->lower[m->effect_at[e]] += add;
        s->upper[m->effect_at[e]] += add;
    }
    for (int32_t r = 0; r < m->row_set_size; r++) {
        s->lower[r] *= m->row_set_factor[r];
        s->upper[r] *= m->row_set_factor[r];
    }
    memcpy(s->col_low, m->col_set_lower, (size_t)m->col_set_size * sizeof(double));
    memcpy(s->col_up, m->col_set_upper, (size_t)m->col_set_size * sizeof(double));
    for (int32_t p = 0; p < m->col_from_size; p++)
        (m->col_sides[p] & SIDE_LOWER ? s->col_low : s->col_up)[m->col_at[p]] = v[m->col_from[p]];
    for (int32_t k = 0; k < m->outputs_size; k++) {
        const int32_t col = m->output_col_at[k], input = m->output_input_at[k];
        s->out_lower[k] = input >= 0 ? x[input] : col >= 0 ? s->col_low[col] : m->output_lower[k];
        s->out_upper[k] = input >= 0 ? x[input] : col >= 0 ? s->col_up[col] : m->output_upper[k];
    }
    for (int32_t c = 0; c < m->col_set_size; c++) {
        s->col_low[c] *= m->col_set_factor[c];
        s->col_up[c] *= m->col_set_factor[c];
    }
    for (int32_t c = 0; c < m->cost_set_size; c++)
        s->costs[c] = v[m->cost_from[c]] * m->cost_factor[c];
}

static bool patch_highs(lp_session *s) {
    const lp_model *m = s->model;
    if (m->row_set_size > 0 &&
        s->lib->changeRowsBoundsBySet(s->highs, m->row_set_size, m->row_set, s->lower, s->upper) < 0)
        return false;
    if (m->col_set_size > 0 &&
        s->lib->changeColsBoundsBySet(s->highs, m->col_set_size, m->col_set, s->col_low, s->col_up) < 0)
        return false;
    if (m->cost_set_size > 0 && s->lib->changeColsCostBySet(s->highs, m->cost_set_size, m->cost_set, s->costs) < 0)
        return false;
    for (int32_t c = 0; c < m->coef_row_size; c++) {
        const double value = s->vector[m->coef_from[c]] * m->coef_factor[c];
        if (s->lib->changeCoeff(s->highs, m->coef_row[c], m->coef_col[c], value) < 0)
            return false;
        s->spoiled |= fabs(value) <= 1e-9; /* HiGHS moves such an entry to another place in its column */
    }
    if (m->offset_from >= 0)
        s->lib->changeObjectiveOffset(s->highs, s->vector[m->offset_from] * m->cost_scale);
    return true;
}

/* Take one opening's bounds and costs into the tableau; false where its basis is then not dual feasible. */
static bool patch_tableau(lp_session *s, const lp_block *b) {
    tableau *t = &s->tab;
    const lp_model *m = s->model;
    for (int32_t k = 0; k < m->row_set_size; k++)
        if (s->lower[k] > s->upper[k])
            return false;
    for (int32_t k = 0; k < m->col_set_size; k++)
        if (s->col_low[k] > s->col_up[k])
            return false;
    if (m->cost_set_size > 0) {
        for (int32_t k = 0; k < m->cost_set_size; k++)
            t->cost[m->cost_set[k]] = s->costs[k];
        compute_reduced_costs(t);
        t->fresh = true;
    }
    for (int32_t k = 0; k < m->row_set_size; k++) {
        const double shift = t->shift[m->row_set[k]];
        if (!set_bounds(t, row_variable(t, m->row_set[k]), s->lower[k] - shift, s->upper[k] - shift, b->dual_tolerance))
            return false;
    }
    for (int32_t k = 0; k < m->col_set_size; k++)
        if (!set_bounds(t, m->col_set[k], s->col_low[k], s->col_up[k], b->dual_tolerance))
            return false;
    return !t->fresh || set_nonbasic_values(t, b->dual_tolerance);
}

/* The same for the kernel, which computes all its values anew. */
static bool patch_kernel(lp_session *s, const lp_block *b) {
    kernel *t = &s->ker;
    const lp_model *m = s->model;
    for (int32_t k = 0; k < m->row_set_size; k++) {
        const int32_t r = m->row_set[k];
        if (s->lower[k] > s->upper[k])
            return false;
        t->row_lo[r] = s->lower[k];
        t->row_up[r] = s->upper[k];
    }
    for (int32_t k = 0; k < m->col_set_size; k++) {
        if (s->col_low[k] > s->col_up[k])
            return false;
        t->lo[m->col_set[k]] = s->col_low[k];
        t->up[m->col_set[k]] = s->col_up[k];
    }
    if (m->cost_set_size > 0) {
        for (int32_t k = 0; k < m->cost_set_size; k++)
            t->cost[m->cost_set[k]] = s->costs[k];
        kernel_compute_reduced_costs(t);
        t->fresh = true;
    }
    kernel_define(t, b->pool);
    return kernel_set_nonbasic_values(t, b->dual_tolerance);
}

#endif
