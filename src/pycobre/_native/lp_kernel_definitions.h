/* The LP that the kernel works on: the compiled twin of pycobre/solver/reference/kernel_lp.py. Columns that are fixed, or
 * that equations define, are not in it; their shares are in `shift`, and their values and duals are restored here. */
#ifndef PYCOBRE_LP_KERNEL_DEFINITIONS_H
#define PYCOBRE_LP_KERNEL_DEFINITIONS_H

#include "lp_kernel.h"

/* The base rows by row, with the columns that are left. */
static void kernel_copy_rows(kernel *t) {
    const lp_model *m = t->m;
    memset(t->row_start, 0, ((size_t)m->num_row + 1) * sizeof(int32_t));
    for (int32_t e = 0; e < m->left_rows_size; e++)
        t->row_start[m->left_rows[e] + 1]++;
    for (int32_t r = 0; r < m->num_row; r++) {
        t->row_start[r + 1] += t->row_start[r];
        t->row_list[r] = t->row_start[r];
    }
    for (int32_t a = 0; a < m->left_size; a++) {
        const int32_t col = m->left[a];
        for (int32_t e = m->left_starts[col]; e < m->left_starts[col + 1]; e++) {
            const int32_t to = t->row_list[m->left_rows[e]]++;
            t->row_col[to] = col;
            t->row_value[to] = m->left_values[e];
        }
    }
}

/* Make room for the model; there is no basis until `kernel_build`. */
static bool kernel_open(kernel *t, const lp_model *m) {
    kernel_free(t);
    t->m = m;
    const int32_t n = m->num_col;
    if (!(RESIZE(t->pool_col, m->outputs_size + 1) && RESIZE(t->pool_at, n) && RESIZE(t->definer, n) &&
          RESIZE(t->known, m->outputs_size)))
        return false;
    t->width = t->known_size = 0;
    for (int32_t col = 0; col < n; col++)
        t->pool_at[col] = t->definer[col] = -1;
    for (int32_t d = 0; d < m->defined_col_size; d++)
        t->definer[m->defined_col[d]] = m->defined_row[d];
    for (int32_t k = 0; k < m->outputs_size; k++)
        if (t->definer[m->outputs[k]] >= 0)
            t->known[t->known_size++] = k;
    for (int32_t k = m->head < 0 ? m->outputs_size : -1; k < m->outputs_size; k++) {
        const int32_t col = k < 0 ? m->head : m->outputs[k];
        if (m->left_at[col] < 0 || t->pool_at[col] >= 0)
            continue;
        t->pool_at[col] = t->width;
        t->pool_col[t->width++] = col;
    }
    t->stride_pool = (t->width + LINE - 1) / LINE * LINE;
    if (!(RESIZE(t->row_start, m->num_row + 1) && RESIZE(t->row_col, m->left_values_size) &&
          RESIZE(t->row_value, m->left_values_size) && RESIZE(t->price, m->num_row) && RESIZE(t->row_lo, m->num_row) &&
          RESIZE(t->row_up, m->num_row) && RESIZE(t->col_pos, n) && RESIZE(t->z, padded(n)) &&
          RESIZE(t->cost, padded(n)) && RESIZE(t->dual, n) && RESIZE(t->dual_size, n) && RESIZE(t->pivot, n) &&
          RESIZE(t->col_list, n + 1) && RESIZE(t->order, n) && RESIZE(t->count, n) &&
          kernel_reserve_rows(t, 32) && kernel_reserve_inverse(t, m->num_row / 3)))
        return false;
    memset(t->pivot, 0, (size_t)n * sizeof *t->pivot);
    kernel_copy_rows(t);
    return true;
}

/* ---- constants and bounds ---- */

/* What the fixed columns of z add to the base rows. */
static void kernel_fix(kernel *t) {
    const lp_model *m = t->m;
    for (int32_t r = 0; r < m->num_row; r++)
        t->fixed[r] = 0.0;
    for (int32_t col = 0; col < m->num_col; col++)
        for (int32_t e = m->starts[col]; m->active_at[col] < 0 && e < m->starts[col + 1]; e++)
            t->fixed[m->rows[e]] += m->values[e] * t->z[col];
}

/* What columns that are not left add to a pool row, and its bound: anew in every opening, for known columns change. */
static void kernel_bound_row(kernel *t, const pool_view *pool, int32_t p) {
    const lp_model *m = t->m;
    const int32_t r = m->num_row + p;
    const double *slope = pool->slope + (size_t)t->slot[p] * (size_t)pool->width;
    double shift = t->fixed[r];
    for (int32_t e = 0; e < t->known_size; e++) {
        const int32_t k = t->known[e];
        shift += slope[k] * m->slope_factor[k] * t->z[m->outputs[k]];
    }
    t->shift[r] = shift;
    t->lo[m->num_col + r] = pool->intercept[t->slot[p]] * m->pool_factor - shift;
}

/* What is not left adds to every row, and the bounds of all rows, from the bounds of the LP's own rows and columns; the
 * row that defines a column has the column's bounds. */
static void kernel_define(kernel *t, const pool_view *pool) {
    const lp_model *m = t->m;
    const int32_t n = m->num_col;
    memcpy(t->shift, t->fixed, (size_t)m->num_row * sizeof(double));
    for (int32_t d = 0; d < m->defined_row_size; d++) {
        const int32_t r = m->defined_row[d];
        const double constant = (t->row_lo[r] - t->shift[r]) / m->defined_pivot[d];
        for (int32_t e = m->defined_starts[d]; e < m->defined_starts[d + 1]; e++)
            t->shift[m->defined_effect_row[e]] += m->defined_effect_value[e] * constant;
        t->shift[r] = constant;
    }
    for (int32_t r = 0; r < m->num_row; r++) {
        t->lo[n + r] = t->row_lo[r] - t->shift[r];
        t->up[n + r] = t->row_up[r] - t->shift[r];
    }
    for (int32_t d = 0; d < m->defined_row_size; d++) {
        const int32_t r = m->defined_row[d], col = m->defined_col[d];
        t->lo[n + r] = t->lo[col] - t->shift[r];
        t->up[n + r] = t->up[col] - t->shift[r];
        t->z[col] = t->shift[r];
    }
    for (int32_t p = 0; p < t->pool_rows; p++)
        if (t->slot[p] >= 0)
            kernel_bound_row(t, pool, p);
}

/* ---- values and duals of the whole LP ---- */

static void kernel_read_columns(kernel *t) {
    const lp_model *m = t->m;
    for (int32_t a = 0; a < m->left_size; a++)
        t->z[m->left[a]] = t->x[m->left[a]];
    for (int32_t d = 0; d < m->defined_row_size; d++) {
        const int32_t r = m->defined_row[d];
        t->z[m->defined_col[d]] = t->x[m->num_col + r] + t->shift[r];
    }
}

/* The duals of the LP's own base rows, into `price`, and the reduced costs of defined columns: those of the rows that
 * define them. Such a row's dual is what makes the column's reduced cost right: the steps in reverse. */
static void kernel_read_duals(kernel *t, const pool_view *pool) {
    const lp_model *m = t->m;
    const int32_t n = m->num_col;
    memcpy(t->price, t->d + n, (size_t)m->num_row * sizeof(double));
    for (int32_t d = 0; d < m->defined_col_size; d++)
        t->dual[m->defined_col[d]] = t->cost[m->defined_col[d]];
    for (int32_t p = 0; p < t->pool_rows; p++) {
        const double y = t->d[n + m->num_row + p];
        if (t->slot[p] < 0 || y == 0.0)
            continue;
        const double *slope = pool->slope + (size_t)t->slot[p] * (size_t)pool->width;
        for (int32_t e = 0; e < t->known_size; e++) {
            const int32_t k = t->known[e];
            t->dual[m->outputs[k]] -= slope[k] * m->slope_factor[k] * y;
        }
    }
    for (int32_t d = m->defined_row_size - 1; d >= 0; d--) {
        const int32_t r = m->defined_row[d], col = m->defined_col[d];
        double rest = t->dual[col];
        for (int32_t e = m->defined_starts[d]; e < m->defined_starts[d + 1]; e++)
            rest -= m->defined_effect_value[e] * t->price[m->defined_effect_row[e]];
        t->d[col] = t->price[r];
        t->price[r] = (rest - t->d[col]) / m->defined_pivot[d];
    }
}

#endif
