/* Whether an answer of HiGHS is optimal, checked against the LP's own numbers: pycobre/solver/reference/certificate.py
 * in C. Read that file for what is checked and why; the sums are taken in the same order. */
#ifndef PYCOBRE_LP_CERTIFICATE_H
#define PYCOBRE_LP_CERTIFICATE_H

#include "lp_session.h"

enum { CERTIFICATE_ATTEMPTS = 2 }; /* cold solves after an answer was rejected; the last one is taken as it is */
static const double CERTIFICATE_RESIDUAL = 1e-9;
static const double SMALLEST_COEFFICIENT = 1e-9; /* HiGHS drops entries of this size and less */

/* Scratch of one check, for the columns and the rows of the LP with its cuts. */
static bool reserve_certificate(lp_session *s) {
    certificate_scratch *c = &s->certificate;
    const int32_t cols = s->model->num_col, rows = s->model->num_row + s->num_present;
    if (c->cols < cols || c->reduced == NULL) {
        if (!(RESIZE(c->cost, cols) && RESIZE(c->lower, cols) && RESIZE(c->upper, cols) && RESIZE(c->reduced, cols) &&
              RESIZE(c->reduced_size, cols)))
            return false;
        c->cols = cols;
    }
    if (c->rows < rows || c->activity == NULL) {
        const int32_t room = roomier(rows);
        if (!(RESIZE(c->row_lower, room) && RESIZE(c->row_upper, room) && RESIZE(c->activity, room) &&
              RESIZE(c->activity_size, room)))
            return false;
        c->rows = room;
    }
    return true;
}

static double kept_coefficient(double value) {
    return fabs(value) <= SMALLEST_COEFFICIENT ? 0.0 : value;
}

/* The bounds and costs of the LP that HiGHS has solved. */
static void read_lp(lp_session *s, const lp_block *b) {
    const lp_model *m = s->model;
    certificate_scratch *c = &s->certificate;
    memcpy(c->cost, m->cost, (size_t)m->num_col * sizeof(double));
    memcpy(c->lower, m->col_lower, (size_t)m->num_col * sizeof(double));
    memcpy(c->upper, m->col_upper, (size_t)m->num_col * sizeof(double));
    memcpy(c->row_lower, m->row_lower, (size_t)m->num_row * sizeof(double));
    memcpy(c->row_upper, m->row_upper, (size_t)m->num_row * sizeof(double));
    for (int32_t k = 0; k < m->cost_set_size; k++)
        c->cost[m->cost_set[k]] = s->costs[k];
    for (int32_t k = 0; k < m->col_set_size; k++) {
        c->lower[m->col_set[k]] = s->col_low[k];
        c->upper[m->col_set[k]] = s->col_up[k];
    }
    const double *x = b->x + (size_t)s->chain * (size_t)m->inputs_size;
    for (int32_t k = 0; k < m->inputs_size; k++)
        c->lower[m->inputs[k]] = c->upper[m->inputs[k]] = x[k] * m->input_factor[k];
    for (int32_t k = 0; k < m->row_set_size; k++) {
        c->row_lower[m->row_set[k]] = s->lower[k];
        c->row_upper[m->row_set[k]] = s->upper[k];
    }
    for (int32_t k = 0; k < s->num_present; k++) {
        c->row_lower[m->num_row + k] = b->pool->intercept[s->present[k]] * m->pool_factor;
        c->row_upper[m->num_row + k] = INFINITY;
    }
}

/* One entry's share of its row's activity and of its column's reduced cost. */
static void add_entry(lp_session *s, int32_t row, int32_t col, double value) {
    certificate_scratch *c = &s->certificate;
    const double term = value * s->col_value[col], priced = value * s->row_dual[row];
    c->activity[row] += term;
    c->activity_size[row] += fabs(term);
    c->reduced[col] -= priced;
    c->reduced_size[col] += fabs(priced);
}

static void add_entries(lp_session *s, const lp_block *b) {
    const lp_model *m = s->model;
    certificate_scratch *c = &s->certificate;
    const size_t rows = (size_t)(m->num_row + s->num_present);
    memset(c->activity, 0, rows * sizeof(double));
    memset(c->activity_size, 0, rows * sizeof(double));
    for (int32_t col = 0; col < m->num_col; col++) {
        c->reduced[col] = c->cost[col];
        c->reduced_size[col] = fabs(c->cost[col]);
    }
    for (int32_t col = 0; col < m->num_col; col++)
        for (int32_t e = m->starts[col]; e < m->starts[col + 1]; e++)
            add_entry(s, m->rows[e], col, kept_coefficient(m->values[e]));
    for (int32_t k = 0; k < m->coef_row_size; k++) { /* the difference that each patched coefficient makes */
        const int32_t row = m->coef_row[k], col = m->coef_col[k];
        double old = 0.0;
        for (int32_t e = m->starts[col]; e < m->starts[col + 1]; e++)
            if (m->rows[e] == row)
                old = kept_coefficient(m->values[e]);
        add_entry(s, row, col, kept_coefficient(s->vector[m->coef_from[k]] * m->coef_factor[k]) - old);
    }
    for (int32_t k = 0; k < s->num_present; k++) {
        const double *slope = b->pool->slope + (size_t)s->present[k] * (size_t)b->pool->width;
        add_entry(s, m->num_row + k, m->head, 1.0);
        for (int32_t o = 0; o < m->outputs_size; o++)
            add_entry(s, m->num_row + k, m->outputs[o], kept_coefficient(slope[o] * m->slope_factor[o]));
    }
}

/* Add what keeps `count` values from the bounds that their forces ask for; false where a force asks for a bound that is
 * not there. `sizes` may be NULL. */
static bool add_gap(const double *force, const double *at, const double *lower, const double *upper,
                    const double *sizes, int32_t count, double dual, double *gap) {
    for (int32_t k = 0; k < count; k++) {
        const double bound = force[k] > 0.0 ? lower[k] : upper[k];
        if (isfinite(bound) && force[k] != 0.0)
            *gap += fabs(force[k]) * fabs(at[k] - bound);
        else if (!(fabs(force[k]) <= (sizes != NULL ? dual + CERTIFICATE_RESIDUAL * sizes[k] : dual)))
            return false;
    }
    return true;
}

static bool within(const double *values, const double *lower, const double *upper, const double *sizes, int32_t count,
                   double primal) {
    for (int32_t k = 0; k < count; k++) {
        const double slack = primal + CERTIFICATE_RESIDUAL * fabs(sizes[k]);
        if (!(lower[k] - values[k] <= slack && values[k] - upper[k] <= slack))
            return false;
    }
    return true;
}

/* Whether `col_value`, `col_dual` and `row_dual` of the session solve its LP. Every test fails for a NaN. */
static bool is_certified(lp_session *s, const lp_block *b, double objective) {
    const lp_model *m = s->model;
    certificate_scratch *c = &s->certificate;
    const double *z = s->col_value;
    const int32_t rows = m->num_row + s->num_present;
    read_lp(s, b);
    add_entries(s, b);
    if (!within(z, c->lower, c->upper, z, m->num_col, b->primal_tolerance) ||
        !within(c->activity, c->row_lower, c->row_upper, c->activity_size, rows, b->primal_tolerance))
        return false;
    for (int32_t col = 0; col < m->num_col; col++)
        if (!(fabs(c->reduced[col] - s->col_dual[col]) <= CERTIFICATE_RESIDUAL * (1.0 + c->reduced_size[col])))
            return false;
    const double offset = m->offset_from >= 0 ? s->vector[m->offset_from] * m->cost_scale : m->offset;
    double spent = 1.0 + fabs(offset), cost = offset, gap = 0.0;
    for (int32_t col = 0; col < m->num_col; col++) {
        spent += fabs(c->cost[col] * z[col]);
        cost += c->cost[col] * z[col];
    }
    if (!(fabs(cost - objective) <= CERTIFICATE_RESIDUAL * spent))
        return false;
    return add_gap(c->reduced, z, c->lower, c->upper, c->reduced_size, m->num_col, b->dual_tolerance, &gap) &&
           add_gap(s->row_dual, c->activity, c->row_lower, c->row_upper, NULL, rows, b->dual_tolerance, &gap) &&
           gap <= CERTIFICATE_RESIDUAL * spent;
}

typedef enum { ANSWER_TAKEN, ANSWER_REJECTED, ANSWER_NO_MEMORY } answer_end;

/* Certify what HiGHS has returned; after the last attempt it is taken as it is, and counted. */
static answer_end judge_answer(lp_session *s, const lp_block *b) {
    if (!reserve_certificate(s))
        return ANSWER_NO_MEMORY;
    s->run_certified = is_certified(s, b, s->lib->getObjectiveValue(s->highs));
    if (s->reject_next > 0) { /* a test asks for it */
        s->reject_next--;
        s->run_certified = false;
    }
    s->run_rejected += !s->run_certified;
    return s->run_certified || s->run_rejected > CERTIFICATE_ATTEMPTS ? ANSWER_TAKEN : ANSWER_REJECTED;
}

#endif
