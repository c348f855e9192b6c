/* Pool rows, bases and values of the kernel. */
#ifndef PYCOBRE_LP_KERNEL_BASIS_H
#define PYCOBRE_LP_KERNEL_BASIS_H

#include "lp_kernel_definitions.h"

/* ---- pool rows ---- */

/* Take in the pool row of `slot`, its logical basic; its value is not computed yet. */
static bool kernel_name_row(kernel *t, const pool_view *pool, int32_t slot) {
    const lp_model *m = t->m;
    if (!kernel_reserve_rows(t, t->pool_rows + 1))
        return false;
    const int32_t p = t->pool_rows++, variable = m->num_col + m->num_row + p;
    const double *slope = pool->slope + (size_t)slot * (size_t)pool->width;
    double *values = t->pool_value + (size_t)p * (size_t)t->stride_pool, shift = 0.0;
    for (int32_t e = 0; e < t->stride_pool; e++)
        values[e] = 0.0;
    for (int32_t k = -1; k < m->outputs_size; k++) {
        const int32_t col = k < 0 ? m->head : m->outputs[k];
        const double value = k < 0 ? 1.0 : slope[k] * m->slope_factor[k];
        if (m->active_at[col] < 0)
            shift += value * t->z[col];
        else if (m->left_at[col] >= 0)
            values[t->pool_at[col]] += value;
    }
    for (int32_t at = 0; at < t->width; at++)
        t->pool_by_col[(size_t)at * (size_t)t->pool_room + (size_t)p] = values[at];
    t->slot[p] = slot;
    t->fixed[m->num_row + p] = shift;
    kernel_bound_row(t, pool, p);
    t->row_pos[m->num_row + p] = -1;
    t->up[variable] = INFINITY;
    t->at[variable] = IS_BASIC;
    t->weight[variable] = 1.0;
    t->free_to[variable] = t->listed[variable] = 0;
    t->x[variable] = t->d[variable] = 0.0;
    return true;
}

/* The same during a solve. */
static bool kernel_add_row(kernel *t, const pool_view *pool, int32_t slot) {
    if (!kernel_name_row(t, pool, slot))
        return false;
    const int32_t p = t->pool_rows - 1;
    const double *values = pool_row(t, p);
    double value = 0.0;
    for (int32_t e = 0; e < t->width; e++)
        value += values[e] * t->x[t->pool_col[e]];
    t->x[t->m->num_col + t->m->num_row + p] = value;
    watch(t, t->m->num_col + t->m->num_row + p);
    return true;
}

/* Forget pool row p, whose logical is basic. */
static void kernel_drop_row(kernel *t, int32_t p) {
    const int32_t variable = t->m->num_col + t->m->num_row + p;
    t->slot[p] = -1;
    t->at[variable] = OUTSIDE;
    t->lo[variable] = -INFINITY;
    t->up[variable] = INFINITY;
    t->x[variable] = 0.0;
}

/* ---- values ---- */

/* The product of a column with values of rows, of the kernel's rows only. */
static double column_dot(const kernel *t, int32_t col, const double *by_row) {
    const lp_model *m = t->m;
    double sum = 0.0;
    for (int32_t e = m->left_starts[col]; e < m->left_starts[col + 1]; e++)
        sum += m->left_values[e] * by_row[m->left_rows[e]];
    for (int32_t p = 0; t->pool_at[col] >= 0 && p < t->pool_rows; p++)
        if (t->row_pos[m->num_row + p] >= 0)
            sum += pool_column(t, t->pool_at[col])[p] * by_row[m->num_row + p];
    return sum;
}

/* The reduced costs of the nonbasic variables, from the costs; those of basic ones are 0. What the inverse gives is
 * corrected once by what is left of the costs. */
static void kernel_compute_reduced_costs(kernel *t) {
    const lp_model *m = t->m;
    const int32_t n = m->num_col, rows = kernel_rows(t);
    double *y = t->moved;
    for (int32_t c = 0; c < t->k; c++)
        y[c] = 0.0;
    for (int32_t r = 0; r < rows; r++)
        t->d[n + r] = 0.0;
    for (int32_t pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < t->k; i++) {
            const int32_t col = t->kcol[i];
            t->col[i] = col < 0 ? 0.0 : pass == 0 ? t->cost[col] : t->cost[col] - column_dot(t, col, t->d + n);
        }
        for (int32_t i = 0; i < t->k; i++)
            if (t->col[i] != 0.0)
                add_inverse_row(t, i, t->col[i], y);
        for (int32_t c = 0; c < t->k; c++)
            if (t->krow[c] >= 0)
                t->d[n + t->krow[c]] = y[c];
    }
    for (int32_t a = 0; a < m->left_size; a++) {
        const int32_t col = m->left[a];
        t->d[col] = t->col_pos[col] >= 0 ? 0.0 : t->cost[col] - column_dot(t, col, t->d + n);
    }
}

/* Add the columns with values `x` to `g` by row: those of the kernel, or the nonbasic ones. */
static void add_columns(const kernel *t, bool basic, double *g) {
    const lp_model *m = t->m;
    for (int32_t a = 0; a < m->left_size; a++) {
        const int32_t col = m->left[a];
        const double x = t->x[col];
        if ((t->col_pos[col] >= 0) != basic || x == 0.0)
            continue;
        for (int32_t e = m->left_starts[col]; e < m->left_starts[col + 1]; e++)
            g[m->left_rows[e]] += m->left_values[e] * x;
        for (int32_t p = 0; t->pool_at[col] >= 0 && p < t->pool_rows; p++)
            g[m->num_row + p] += pool_column(t, t->pool_at[col])[p] * x;
    }
}

/* The values of the basic variables, from those of the nonbasic ones; corrected once, likewise. */
static void kernel_recompute(kernel *t) {
    const int32_t n = t->m->num_col, rows = kernel_rows(t);
    double *fixed = t->size, *g = t->work; /* `work` is zero between solves: given back so */
    for (int32_t r = 0; r < rows; r++)
        fixed[r] = 0.0;
    add_columns(t, false, fixed);
    for (int32_t i = 0; i < t->k; i++)
        t->col[i] = 0.0;
    for (int32_t pass = 0; pass < 2; pass++) {
        for (int32_t c = 0; c < t->k; c++) {
            const int32_t r = t->krow[c];
            const double missing = r < 0 ? 0.0 : t->x[n + r] - fixed[r] - g[r];
            if (missing != 0.0)
                add_inverse_column(t, c, missing, t->col);
        }
        for (int32_t i = 0; i < t->k; i++)
            if (t->kcol[i] >= 0)
                t->x[t->kcol[i]] = t->col[i];
        for (int32_t r = 0; r < rows; r++)
            g[r] = 0.0;
        add_columns(t, true, g);
    }
    for (int32_t r = 0; r < rows; r++) {
        if (t->at[n + r] == IS_BASIC)
            t->x[n + r] = fixed[r] + g[r];
        g[r] = 0.0;
    }
    forget_outside(t);
    for (int32_t i = 0; i < t->k; i++)
        if (t->kcol[i] >= 0)
            watch(t, t->kcol[i]);
    for (int32_t r = 0; r < rows; r++)
        if (t->at[n + r] == IS_BASIC)
            watch(t, n + r);
    t->changed = false;
}

/* ---- bounds ---- */

/* The bound that the reduced cost of a nonbasic variable asks for, or the one it has where it asks for none. */
static inline int8_t kernel_dual_feasible_bound(const kernel *t, int32_t v, double tolerance) {
    const bool has_lo = isfinite(t->lo[v]), has_up = isfinite(t->up[v]);
    int8_t at = t->at[v] == AT_ZERO ? AT_LOWER : t->at[v];
    if (t->d[v] > tolerance)
        at = AT_LOWER;
    else if (t->d[v] < -tolerance)
        at = AT_UPPER;
    if (at == AT_LOWER)
        return has_lo ? AT_LOWER : has_up ? AT_UPPER : AT_ZERO;
    return has_up ? AT_UPPER : has_lo ? AT_LOWER : AT_ZERO;
}

static inline bool kernel_is_dual_infeasible(const kernel *t, int32_t v, int8_t at, double tolerance) {
    const bool too_low = t->d[v] < -tolerance && at != AT_UPPER, too_high = t->d[v] > tolerance && at != AT_LOWER;
    return (too_low || too_high) && t->lo[v] < t->up[v];
}

static bool kernel_is_nonbasic(const kernel *t, int32_t v) {
    return t->at[v] != IS_BASIC && t->at[v] != OUTSIDE;
}

static bool kernel_dual_feasible(const kernel *t, double tolerance) {
    const int32_t all = t->m->num_col + kernel_rows(t);
    for (int32_t v = 0; v < all; v++)
        if (kernel_is_nonbasic(t, v) && kernel_is_dual_infeasible(t, v, t->at[v], tolerance))
            return false;
    return true;
}

static bool kernel_primal_feasible(const kernel *t) {
    const int32_t all = t->m->num_col + kernel_rows(t);
    for (int32_t v = 0; v < all; v++)
        if (t->at[v] != OUTSIDE && outside_by(t, v) > t->primal_tolerance)
            return false;
    return true;
}

static inline double kernel_bound(const kernel *t, int32_t v) {
    return t->at[v] == AT_LOWER ? t->lo[v] : t->at[v] == AT_UPPER ? t->up[v] : 0.0;
}

/* Put every nonbasic variable on the bound that its reduced cost asks for, and compute the basic ones; false where a
 * variable has no such bound. */
static bool kernel_set_nonbasic_values(kernel *t, double tolerance) {
    const int32_t all = t->m->num_col + kernel_rows(t);
    for (int32_t v = 0; t->fresh && v < all; v++)
        t->weight[v] = 1.0;
    t->fresh = false;
    for (int32_t v = 0; v < all; v++) {
        if (kernel_is_nonbasic(t, v)) {
            const int8_t at = kernel_dual_feasible_bound(t, v, tolerance);
            if (kernel_is_dual_infeasible(t, v, at, tolerance))
                return false;
            t->at[v] = at;
            t->x[v] = kernel_bound(t, v);
        }
        kernel_set_free(t, v);
    }
    kernel_recompute(t);
    return true;
}

/* ---- building ---- */

/* All logicals of the base rows basic, no pool rows. */
static void kernel_logical(kernel *t) {
    const lp_model *m = t->m;
    clear_inverse(t);
    t->pool_rows = t->updates = 0;
    for (int32_t r = 0; r < m->num_row; r++) {
        t->row_pos[r] = -1;
        t->at[m->num_col + r] = IS_BASIC;
    }
    forget_outside(t);
    for (int32_t col = 0; col < m->num_col; col++) {
        t->col_pos[col] = -1;
        t->at[col] = m->left_at[col] < 0 ? OUTSIDE : AT_LOWER;
        t->x[col] = t->d[col] = 0.0;
    }
}

/* Whether a row may give its logical to the kernel: the basis calls it nonbasic, and it has not done so. */
static inline bool may_join(const kernel *t, int32_t r) {
    return t->row_pos[r] < 0 && t->wanted[t->m->num_col + r] != IS_BASIC;
}

/* Bring a column into the basis, for the logical of the row with the largest entry; that row, or -1 where none has one. */
static int32_t join_column(kernel *t, int32_t col) {
    const int32_t n = t->m->num_col;
    scatter_variable(t, col, 1.0);
    solve_column(t, t->col);
    int32_t best = -1;
    double largest = PIVOT_SMALLEST;
    for (int32_t e = 0; e < t->rows_touched; e++) {
        const int32_t r = t->row_list[e];
        const double size = fabs(t->work[r]);
        if (may_join(t, r) && (size > largest || (size == largest && r < best))) {
            best = r;
            largest = size;
        }
    }
    const double entry = best >= 0 ? t->work[best] : 0.0;
    forget_rows(t);
    if (best < 0)
        return -1;
    solve_row(t, n + best);
    exchange_kernel(t, -1 - best, col, entry);
    t->at[col] = IS_BASIC;
    t->at[n + best] = AT_LOWER;
    return best;
}

/* The rows that may join and have an entry of the column. */
static int32_t count_joinable(const kernel *t, int32_t col) {
    const lp_model *m = t->m;
    int32_t count = 0;
    for (int32_t e = m->left_starts[col]; e < m->left_starts[col + 1]; e++)
        count += may_join(t, m->left_rows[e]);
    for (int32_t p = 0; t->pool_at[col] >= 0 && p < t->pool_rows; p++)
        count += may_join(t, m->num_row + p);
    return count;
}

/* A row has joined: `column` has one less to look at, and goes to the end of the queue when one is left. */
static inline int32_t count_down(kernel *t, int32_t col, int32_t queued) {
    if (t->wanted[col] == IS_BASIC && t->col_pos[col] < 0 && --t->count[col] == 1)
        t->order[queued++] = col;
    return queued;
}

/* The basis in `wanted`: first columns that have one row left, again and again, so that most of the inverse grows without
 * fill-in; then the others. A column that finds no row stays nonbasic. */
static bool kernel_install_basis(kernel *t) {
    const lp_model *m = t->m;
    const int32_t n = m->num_col, all = n + kernel_rows(t);
    int32_t wanted = 0, queued = 0;
    for (int32_t a = 0; a < m->left_size; a++) {
        const int32_t col = m->left[a];
        if (t->wanted[col] != IS_BASIC)
            continue;
        wanted++;
        t->count[col] = count_joinable(t, col);
        if (t->count[col] == 1)
            t->order[queued++] = col;
    }
    if (!kernel_reserve_inverse(t, wanted + 1))
        return false;
    for (int32_t e = 0; e < queued; e++) {
        const int32_t r = join_column(t, t->order[e]);
        if (r >= m->num_row)
            for (int32_t at = 0; at < t->width; at++)
                queued = count_down(t, t->pool_col[at], queued);
        else if (r >= 0)
            for (int32_t at = t->row_start[r]; at < t->row_start[r + 1]; at++)
                queued = count_down(t, t->row_col[at], queued);
    }
    for (int32_t a = 0; a < m->left_size; a++)
        if (t->wanted[m->left[a]] == IS_BASIC && t->col_pos[m->left[a]] < 0)
            join_column(t, m->left[a]);
    for (int32_t v = 0; v < all; v++)
        if (kernel_is_nonbasic(t, v))
            t->at[v] = t->wanted[v] == AT_UPPER ? AT_UPPER : AT_LOWER;
    return true;
}

/* The kernel of the `n` pool rows in `slots` and the basis in `wanted`. */
static bool kernel_build(kernel *t, const pool_view *pool, const int32_t *slots, int32_t n) {
    kernel_logical(t);
    for (int32_t p = 0; p < n; p++)
        if (!kernel_name_row(t, pool, slots[p]))
            return false;
    if (!kernel_install_basis(t))
        return false;
    t->updates = 0;
    kernel_compute_reduced_costs(t);
    return true;
}

/* Compute the inverse anew, with the basis there is now; dropped pool rows are forgotten. */
static bool kernel_refactor(kernel *t, const pool_view *pool) {
    const lp_model *m = t->m;
    const int32_t known = m->num_col + m->num_row;
    int32_t n = 0;
    for (int32_t v = 0; v < known; v++)
        t->wanted[v] = t->at[v] == OUTSIDE ? AT_LOWER : t->at[v];
    for (int32_t p = 0; p < t->pool_rows; p++)
        if (t->slot[p] >= 0) {
            t->wanted[known + n] = t->at[known + p];
            t->slot[n++] = t->slot[p];
        }
    return kernel_build(t, pool, t->slot, n);
}

#endif
