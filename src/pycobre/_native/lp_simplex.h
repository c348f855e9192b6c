/* The dual simplex on a tableau, and the proof that its answer is one: the other half of pycobre/solver/tableau.py. */
#ifndef PYCOBRE_LP_SIMPLEX_H
#define PYCOBRE_LP_SIMPLEX_H

#include "lp_tableau.h"

#define RESIDUAL_LARGEST 1e-9 /* of a row or column, relative to its terms: beyond it the tableau has drifted */

/* The row whose variable is outside its bounds by the largest square over weight (ties: first), or -1. */
static int32_t choose_row(const tableau *t, double tolerance) {
    int32_t best = -1;
    double largest = 0.0;
    for (int32_t r = 0; r < t->rows; r++) {
        const double below = t->blo[r] - t->xb[r], above = t->xb[r] - t->bup[r];
        const double outside = below > above ? below : above;
        if (outside > tolerance) {
            const double merit = outside * outside / t->weight[r];
            best = merit > largest ? r : best;
            largest = merit > largest ? merit : largest;
        }
    }
    return best;
}

/* Whether each column can move a row up (`sign` 1) or down (-1). */
WIDEST static void find_eligible(const double *restrict row, const int8_t *restrict at, const double *restrict lo,
                                 const double *restrict up, int32_t cols, double sign, int8_t *restrict eligible) {
    for (int32_t c = 0; c < cols; c++) {
        const double a = sign * row[c];
        const bool upward = (a > PIVOT_SMALLEST) & (at[c] != AT_UPPER);
        const bool downward = (a < -PIVOT_SMALLEST) & (at[c] != AT_LOWER);
        eligible[c] = (upward | downward) & (lo[c] < up[c]);
    }
}

/* The column that enters for row r, which has to rise or fall, after the bound flips that the ratio test allows; -1 when
   the row cannot be made feasible. */
static int32_t choose_column(tableau *t, int32_t r, bool rise, double tolerance) {
    const double *row = t->t + (size_t)r * (size_t)t->stride;
    double outside = rise ? t->blo[r] - t->xb[r] : t->xb[r] - t->bup[r];
    int32_t n = 0;
    find_eligible(row, t->at, t->nlo, t->nup, t->cols, rise ? 1.0 : -1.0, t->eligible);
    for (int32_t c = 0; c < t->cols; c++) { /* no branch: it would be hard to predict */
        t->candidate[n] = c;
        n += t->eligible[c];
    }
    while (n > 0) {
        double bound = INFINITY;
        for (int32_t k = 0; k < n; k++) {
            const int32_t c = t->candidate[k];
            const double ratio = (fabs(t->d[c]) + tolerance) / fabs(row[c]);
            bound = ratio < bound ? ratio : bound;
        }
        int32_t best = -1;
        double largest = 0.0;
        for (int32_t k = 0; k < n; k++) {
            const int32_t c = t->candidate[k];
            const double size = fabs(row[c]);
            if (size > largest && fabs(t->d[c]) / size <= bound) {
                best = k;
                largest = size;
            }
        }
        if (best < 0)
            return -1; /* the reduced costs are no numbers any more */
        const int32_t c = t->candidate[best];
        const double range = t->nup[c] - t->nlo[c];
        if (!(outside - largest * range > 0.0))
            return c;
        outside -= largest * range;
        move(t, c, t->at[c] == AT_LOWER ? range : -range);
        t->at[c] = t->at[c] == AT_LOWER ? AT_UPPER : AT_LOWER;
        t->xn[c] = bound_value(t, c);
        t->candidate[best] = t->candidate[--n];
    }
    return -1;
}

/* Devex: weights grow with the steps that rows take; the exchange of r and c is about to happen. */
static void update_devex_weights(tableau *t, int32_t r, int32_t c) {
    const double entry = t->t[(size_t)r * (size_t)t->stride + (size_t)c];
    const double reference = t->weight[r] / (entry * entry);
    for (int32_t i = 0; i < t->rows; i++) {
        const double factor = t->t[(size_t)i * (size_t)t->stride + (size_t)c];
        const double weight = factor * factor * reference;
        if (i != r && weight > t->weight[i])
            t->weight[i] = weight;
    }
    t->weight[r] = reference > 1.0 ? reference : 1.0;
}

/* The direction is that from before the flips: they may have brought the row to its bound up to rounding, or beyond. */
static void pivot(tableau *t, int32_t r, int32_t c, bool rise) {
    const double bound = rise ? t->blo[r] : t->bup[r];
    const double step = (bound - t->xb[r]) / t->t[(size_t)r * (size_t)t->stride + (size_t)c];
    move(t, c, step);
    const double entered = t->xn[c];
    update_devex_weights(t, r, c);
    exchange(t->t, t->d, t->rows, t->stride, r, c, t->block);
    swap_variables(t, r, c);
    t->xb[r] = entered;
    t->xn[c] = bound;
    t->at[c] = rise ? AT_LOWER : AT_UPPER;
    t->pivots++;
}

/* ---- the certificate ---- */

static void read_columns(tableau *t) {
    const lp_model *m = t->m;
    for (int32_t a = 0; a < m->active_size; a++) {
        const int32_t col = m->active[a], place = t->place[col];
        t->z[col] = place < 0 ? t->xn[-1 - place] : t->xb[place];
    }
}

/* The dual of a row's logical, and its value in the LP's own terms. */
static double logical_dual(const tableau *t, int32_t variable) {
    return t->place[variable] < 0 ? t->d[-1 - t->place[variable]] : 0.0;
}

static double logical_value(const tableau *t, int32_t variable, int32_t row) {
    const int32_t place = t->place[variable];
    return (place < 0 ? t->xn[-1 - place] : t->xb[place]) + t->shift[row];
}

/* Whether columns and duals satisfy the LP's own rows and columns, not only the tableau's; fills dual. */
static bool certify(tableau *t, const pool_view *pool) {
    const lp_model *m = t->m;
    for (int32_t r = 0; r < m->num_row; r++)
        t->activity[r] = t->size[r] = 0.0;
    for (int32_t col = 0; col < m->num_col; col++) {
        double dual = t->cost[col], size = fabs(dual);
        for (int32_t e = m->starts[col]; e < m->starts[col + 1]; e++) {
            const int32_t r = m->rows[e];
            const double term = m->values[e] * t->z[col];
            const double priced = m->values[e] * logical_dual(t, row_variable(t, r));
            t->activity[r] += term;
            t->size[r] += fabs(term);
            dual -= priced;
            size += fabs(priced);
        }
        t->dual[col] = dual;
        t->dual_size[col] = size;
    }
    for (int32_t p = 0; p < t->pool_rows; p++) {
        if (t->slot[p] < 0)
            continue;
        const double *slope = pool->slope + (size_t)t->slot[p] * (size_t)pool->width;
        const double y = logical_dual(t, pool_variable(t, p));
        double activity = 0.0, size = 0.0;
        for (int32_t k = -1; k < m->outputs_size; k++) {
            const int32_t col = k < 0 ? m->head : m->outputs[k];
            const double value = k < 0 ? 1.0 : slope[k] * m->slope_factor[k];
            const double term = value * t->z[col];
            activity += term;
            size += fabs(term);
            t->dual[col] -= value * y;
            t->dual_size[col] += fabs(value * y);
        }
        const double value = logical_value(t, pool_variable(t, p), m->num_row + p);
        if (!(fabs(activity - value) <= RESIDUAL_LARGEST * (1.0 + size)))
            return false;
    }
    for (int32_t r = 0; r < m->num_row; r++) {
        const double value = logical_value(t, row_variable(t, r), r);
        if (!(fabs(t->activity[r] - value) <= RESIDUAL_LARGEST * (1.0 + t->size[r])))
            return false;
    }
    for (int32_t a = 0; a < m->active_size; a++) {
        const int32_t col = m->active[a], place = t->place[col];
        const double expected = place < 0 ? t->d[-1 - place] : 0.0;
        if (!(fabs(t->dual[col] - expected) <= RESIDUAL_LARGEST * (1.0 + t->dual_size[col])))
            return false;
    }
    return true;
}

/* ---- one solve ---- */

/* Build the tableau anew from the LP, with the basis it has now. */
static bool refactor(tableau *t, const pool_view *pool) {
    int8_t *wanted = t->wanted;
    const lp_model *m = t->m;
    const int32_t known = m->num_col + m->num_row;
    int32_t n = 0;
    for (int32_t v = 0; v < known; v++)
        wanted[v] = t->place[v] == GONE ? AT_LOWER : t->place[v] < 0 ? t->at[-1 - t->place[v]] : IS_BASIC;
    for (int32_t p = 0; p < t->pool_rows; p++) {
        if (t->slot[p] < 0)
            continue;
        const int32_t place = t->place[pool_variable(t, p)];
        wanted[known + n] = place < 0 ? t->at[-1 - place] : IS_BASIC;
        t->slot[n++] = t->slot[p];
    }
    return tableau_build(t, pool, t->slot, n);
}

/* Pivot until every basic variable is within its bounds; false when that is not to be had. */
static bool iterate(tableau *t, double primal, double dual, int32_t limit) {
    for (int32_t r = choose_row(t, primal); r >= 0; r = choose_row(t, primal)) {
        const bool rise = t->xb[r] < t->blo[r];
        const int32_t c = t->pivots < limit ? choose_column(t, r, rise, 0.5 * dual) : -1;
        if (c < 0)
            return false;
        pivot(t, r, c, rise);
    }
    return true;
}

#endif
