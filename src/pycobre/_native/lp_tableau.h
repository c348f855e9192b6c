/* The dense tableau of a small LP: the compiled twin of pycobre/solver/tableau.py, which explains it.
 *
 * Every number is the result of the same elementwise operations in the same order as there; loops over a row are free
 * to use any vector width. Nothing here touches HiGHS or Python. */
#ifndef PYCOBRE_LP_TABLEAU_H
#define PYCOBRE_LP_TABLEAU_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lp_model.h"
#include "lp_pool.h"

#define PIVOT_SMALLEST 1e-9 /* entries of this size and less are not pivoted on */

enum { AT_LOWER = 0, IS_BASIC = 1, AT_UPPER = 2, AT_ZERO = 3 };

typedef struct {
    const lp_model *m;
    int32_t cols, stride;          /* nonbasic variables, and the same rounded up to whole lines */
    int32_t rows, row_room;        /* basic variables */
    int32_t pool_rows, pool_room;  /* pool rows ever added in this chain, dropped ones included */
    double *t;                     /* [rows][stride] */
    double *d, *xn;                /* [stride] */
    double *xb, *weight;           /* [row_room] */
    int32_t *nonbasic, *basic;     /* variable by column, by row */
    int8_t *at;                    /* status by column */
    int32_t *place;                /* by variable: its row, or -1 - its column, or GONE */
    double *lo, *up;               /* bounds by variable */
    double *nlo, *nup, *blo, *bup; /* the same by column and by row, valid unless `fresh` */
    double *z, *cost;              /* by structural column, padded to whole vectors */
    double *dual, *dual_size;      /* by structural column: reduced cost, and the size of its terms */
    double *shift;                 /* by row of the LP: what the fixed columns add to it */
    double *activity, *size;       /* by row of the LP */
    int32_t *slot;                 /* by pool row: its slot, -1 = dropped */
    int8_t *wanted;                /* by variable: the basis to install */
    int32_t *candidate;            /* [cols] */
    int8_t *eligible;              /* [cols]: whether it can enter */
    int32_t *block;                /* [stride / LINE]: lines of a pivot row that are not zero */
    int32_t pivots;
    bool fresh; /* just built: bounds are not in place, values not computed */
    bool moved; /* xb was updated since it was computed */
} tableau;

enum { GONE = INT32_MIN };

/* A cache line of numbers. A row is made of whole ones: a vector that lies across two costs twice as much. */
typedef double line __attribute__((vector_size(64)));
enum { LINE = sizeof(line) / sizeof(double) };

static inline line load_line(const double *from) {
    line loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

static int32_t padded(int32_t n) {
    return (n + 3) / 4 * 4;
}

/* Variables: structural columns, then base rows, then pool rows in the order in which they came. */
static int32_t row_variable(const tableau *t, int32_t r) {
    return t->m->num_col + r;
}

static int32_t pool_variable(const tableau *t, int32_t p) {
    return t->m->num_col + t->m->num_row + p;
}

static void tableau_free(tableau *t) {
    FREE(t->t), FREE(t->d), FREE(t->xn), FREE(t->xb), FREE(t->weight), FREE(t->nonbasic), FREE(t->basic), FREE(t->at);
    FREE(t->place), FREE(t->lo), FREE(t->up), FREE(t->nlo), FREE(t->nup), FREE(t->blo), FREE(t->bup), FREE(t->z);
    FREE(t->cost), FREE(t->dual), FREE(t->dual_size), FREE(t->shift), FREE(t->activity), FREE(t->size), FREE(t->slot);
    FREE(t->wanted), FREE(t->candidate), FREE(t->eligible), FREE(t->block);
    t->row_room = t->pool_room = 0;
    t->m = NULL;
}

/* Room for `room` rows; those there is room for now stay. */
static bool make_room(tableau *t, int32_t room) {
    const size_t row = (size_t)t->stride * sizeof(double), bytes = (size_t)room * row;
    double *larger = aligned_alloc(sizeof(line), bytes > 0 ? bytes : sizeof(line));
    if (larger == NULL)
        return false;
    if (t->t != NULL)
        memcpy(larger, t->t, (size_t)t->row_room * row);
    free(t->t);
    t->t = larger;
    return true;
}

static bool tableau_reserve(tableau *t, int32_t rows, int32_t pool_rows) {
    const lp_model *m = t->m;
    if (t->t == NULL || rows > t->row_room) {
        const int32_t room = rows + 64;
        if (!(make_room(t, room) && RESIZE(t->xb, room) && RESIZE(t->weight, room) && RESIZE(t->basic, room) &&
              RESIZE(t->blo, room) && RESIZE(t->bup, room)))
            return false;
        t->row_room = room;
    }
    if (t->slot == NULL || pool_rows > t->pool_room) {
        const int32_t room = pool_rows + 32, all = m->num_row + room;
        if (!(RESIZE(t->slot, room) && RESIZE(t->shift, all) && RESIZE(t->activity, all) && RESIZE(t->size, all) &&
              RESIZE(t->place, m->num_col + all) && RESIZE(t->lo, m->num_col + all) &&
              RESIZE(t->up, m->num_col + all) && RESIZE(t->wanted, m->num_col + all)))
            return false;
        t->pool_room = room;
    }
    return true;
}

/* Make room for the model; the tableau is empty until `install_basis`. */
static bool tableau_open(tableau *t, const lp_model *m) {
    tableau_free(t);
    t->m = m;
    t->cols = m->active_size;
    t->stride = (m->active_size + LINE - 1) / LINE * LINE;
    return RESIZE(t->d, t->stride) && RESIZE(t->xn, t->stride) && RESIZE(t->nlo, t->stride) &&
           RESIZE(t->nup, t->stride) && RESIZE(t->nonbasic, t->cols) && RESIZE(t->at, t->cols) &&
           RESIZE(t->candidate, t->cols) && RESIZE(t->eligible, t->cols) && RESIZE(t->block, t->stride / LINE) &&
           RESIZE(t->z, padded(m->num_col)) && RESIZE(t->cost, padded(m->num_col)) && RESIZE(t->dual, m->num_col) &&
           RESIZE(t->dual_size, m->num_col) && tableau_reserve(t, m->num_row, 0);
}

/* ---- elementwise kernels ---- */

/* to += factor * from, both of whole vectors */
WIDEST static void add_multiple(double *restrict to, double factor, const double *restrict from, int32_t n) {
    for (int32_t j = 0; j < n; j++)
        to[j] += factor * from[j];
}

/* Exchange the basic variable of row r and the nonbasic one of column c. Where the pivot row is zero the others stay as
 * they are; only lines of it that are not zero (where they begin goes to `block`) are added. Most of the time of a
 * training is spent here. */
WIDEST static void exchange(double *restrict t, double *restrict d, int32_t rows, int32_t stride, int32_t r, int32_t c,
                            int32_t *restrict block) {
    double *restrict pivot = t + (size_t)r * (size_t)stride;
    const double inverse = 1.0 / pivot[c];
    int32_t blocks = 0;
    for (int32_t j = 0; j < stride; j += LINE) {
        const line scaled = -(load_line(pivot + j) * inverse);
        memcpy(pivot + j, &scaled, sizeof scaled);
        bool any = false;
        for (int32_t k = 0; k < LINE; k++)
            any |= scaled[k] != 0.0;
        block[blocks] = j;
        blocks += any;
    }
    pivot[c] = inverse;
    for (int32_t i = 0; i <= rows; i++) {
        double *restrict row = i < rows ? t + (size_t)i * (size_t)stride : d;
        const double factor = row[c];
        if (i == r || factor == 0.0)
            continue;
        row[c] = 0.0;
        for (int32_t b = 0; b < blocks; b++) {
            const line sum = load_line(row + block[b]) + factor * load_line(pivot + block[b]);
            memcpy(row + block[b], &sum, sizeof sum);
        }
    }
}

static void swap_variables(tableau *t, int32_t r, int32_t c) {
    const int32_t leaving = t->basic[r], entering = t->nonbasic[c];
    t->basic[r] = entering;
    t->nonbasic[c] = leaving;
    t->place[entering] = r;
    t->place[leaving] = -1 - c;
    const double lo = t->blo[r], up = t->bup[r];
    t->blo[r] = t->nlo[c], t->bup[r] = t->nup[c];
    t->nlo[c] = lo, t->nup[c] = up;
}

/* ---- rows and basis ---- */

/* Name the pool row of `slot`, without a row in the tableau yet. */
static bool tableau_name_row(tableau *t, int32_t slot) {
    if (!tableau_reserve(t, t->rows + 1, t->pool_rows + 1))
        return false;
    const int32_t p = t->pool_rows++;
    t->slot[p] = slot;
    t->place[pool_variable(t, p)] = GONE;
    return true;
}

/* Append the row of pool row p in terms of the basis there is, its logical basic. */
static bool tableau_place_row(tableau *t, const pool_view *pool, int32_t p) {
    const lp_model *m = t->m;
    if (!tableau_reserve(t, t->rows + 1, t->pool_rows))
        return false;
    const int32_t r = t->rows++, slot = t->slot[p], variable = pool_variable(t, p);
    const double *slope = pool->slope + (size_t)slot * (size_t)pool->width;
    double *row = t->t + (size_t)r * (size_t)t->stride;
    double shift = 0.0;
    memset(row, 0, (size_t)t->stride * sizeof(double));
    for (int32_t k = -1; k < m->outputs_size; k++) {
        const int32_t col = k < 0 ? m->head : m->outputs[k];
        const double value = k < 0 ? 1.0 : slope[k] * m->slope_factor[k];
        if (m->active_at[col] < 0)
            shift += value * t->z[col];
        else if (t->place[col] < 0)
            row[-1 - t->place[col]] += value;
        else if (value != 0.0)
            add_multiple(row, value, t->t + (size_t)t->place[col] * (size_t)t->stride, t->stride);
    }
    t->basic[r] = variable;
    t->weight[r] = 1.0;
    t->place[variable] = r;
    t->shift[m->num_row + p] = shift;
    t->lo[variable] = t->blo[r] = pool->intercept[slot] * m->pool_factor - shift;
    t->up[variable] = t->bup[r] = INFINITY;
    multiply(row, 1, t->stride, t->xn, &t->xb[r]);
    return true;
}

static bool tableau_add_row(tableau *t, const pool_view *pool, int32_t slot) {
    return tableau_name_row(t, slot) && tableau_place_row(t, pool, t->pool_rows - 1);
}

/* Forget pool row p, whose logical is basic: the last row takes the place of its row. */
static void tableau_drop_row(tableau *t, int32_t p) {
    const int32_t variable = pool_variable(t, p), r = t->place[variable], last = --t->rows;
    if (r != last) {
        memcpy(t->t + (size_t)r * (size_t)t->stride, t->t + (size_t)last * (size_t)t->stride,
               (size_t)t->stride * sizeof(double));
        t->xb[r] = t->xb[last];
        t->weight[r] = t->weight[last];
        t->basic[r] = t->basic[last];
        t->blo[r] = t->blo[last], t->bup[r] = t->bup[last];
        t->place[t->basic[r]] = r;
    }
    t->place[variable] = GONE;
    t->slot[p] = -1;
}

/* The all-logical tableau of the base rows, for the incoming state in z (fixed columns are set). */
static void tableau_logical(tableau *t) {
    const lp_model *m = t->m;
    t->rows = m->num_row;
    t->pool_rows = 0;
    t->fresh = true;
    memset(t->t, 0, (size_t)t->rows * (size_t)t->stride * sizeof(double));
    memset(t->xn, 0, (size_t)t->stride * sizeof(double));
    memset(t->d, 0, (size_t)t->stride * sizeof(double));
    for (int32_t r = 0; r < m->num_row; r++) {
        t->basic[r] = row_variable(t, r);
        t->place[row_variable(t, r)] = r;
        t->shift[r] = 0.0;
    }
    for (int32_t col = 0; col < m->num_col; col++) {
        const int32_t c = m->active_at[col];
        for (int32_t e = m->starts[col]; e < m->starts[col + 1]; e++) {
            if (c < 0)
                t->shift[m->rows[e]] += m->values[e] * t->z[col];
            else
                t->t[(size_t)m->rows[e] * (size_t)t->stride + (size_t)c] = m->values[e];
        }
        t->place[col] = c < 0 ? GONE : -1 - c;
        if (c >= 0) {
            t->nonbasic[c] = col;
            t->at[c] = AT_LOWER;
        }
    }
}

/* Bring the structural columns that `wanted` calls basic into the basis, for logicals that it does not call so. */
static void install_basis(tableau *t) {
    const int8_t *wanted = t->wanted;
    const lp_model *m = t->m;
    for (int32_t a = 0; a < m->active_size; a++) {
        const int32_t col = m->active[a], c = -1 - t->place[col];
        if (wanted[col] != IS_BASIC)
            continue;
        int32_t best = -1;
        double largest = PIVOT_SMALLEST;
        for (int32_t r = 0; r < t->rows; r++) {
            const double entry = fabs(t->t[(size_t)r * (size_t)t->stride + (size_t)c]);
            if (entry > largest && t->basic[r] >= m->num_col && wanted[t->basic[r]] != IS_BASIC) {
                best = r;
                largest = entry;
            }
        }
        if (best < 0)
            continue;
        exchange(t->t, t->d, t->rows, t->stride, best, c, t->block);
        swap_variables(t, best, c);
    }
    for (int32_t c = 0; c < t->cols; c++)
        t->at[c] = wanted[t->nonbasic[c]] == AT_UPPER ? AT_UPPER : AT_LOWER;
}

/* The reduced costs of the nonbasic variables, from the costs. */
static void compute_reduced_costs(tableau *t) {
    memset(t->d, 0, (size_t)t->stride * sizeof(double));
    for (int32_t c = 0; c < t->cols; c++)
        if (t->nonbasic[c] < t->m->num_col)
            t->d[c] = t->cost[t->nonbasic[c]];
    for (int32_t r = 0; r < t->rows; r++)
        if (t->basic[r] < t->m->num_col && t->cost[t->basic[r]] != 0.0)
            add_multiple(t->d, t->cost[t->basic[r]], t->t + (size_t)r * (size_t)t->stride, t->stride);
}

/* The tableau of the `n` pool rows in `slots` and the basis in `wanted`. Rows whose logical is basic take no part in
 * bringing columns into the basis: they come last, in terms of the basis there is then. */
static bool tableau_build(tableau *t, const pool_view *pool, const int32_t *slots, int32_t n) {
    const int32_t known = t->m->num_col + t->m->num_row;
    tableau_logical(t);
    for (int32_t p = 0; p < n; p++)
        if (!tableau_name_row(t, slots[p]))
            return false;
    for (int32_t p = 0; p < n; p++)
        if (t->wanted[known + p] != IS_BASIC && !tableau_place_row(t, pool, p))
            return false;
    install_basis(t);
    for (int32_t p = 0; p < n; p++)
        if (t->wanted[known + p] == IS_BASIC && !tableau_place_row(t, pool, p))
            return false;
    compute_reduced_costs(t);
    return true;
}

/* ---- bounds and values ---- */

/* The bound that the reduced cost of column c asks for, or the one it has where it asks for none. */
static inline int8_t dual_feasible_bound(const tableau *t, int32_t c, double tolerance) {
    const bool has_lo = isfinite(t->nlo[c]), has_up = isfinite(t->nup[c]);
    int8_t at = t->at[c] == AT_ZERO ? AT_LOWER : t->at[c];
    if (t->d[c] > tolerance)
        at = AT_LOWER;
    else if (t->d[c] < -tolerance)
        at = AT_UPPER;
    if (at == AT_LOWER)
        return has_lo ? AT_LOWER : has_up ? AT_UPPER : AT_ZERO;
    return has_up ? AT_UPPER : has_lo ? AT_LOWER : AT_ZERO;
}

/* Whether column c at that bound is not dual feasible. */
static inline bool is_dual_infeasible(const tableau *t, int32_t c, int8_t at, double tolerance) {
    const bool too_low = t->d[c] < -tolerance && at != AT_UPPER, too_high = t->d[c] > tolerance && at != AT_LOWER;
    return (too_low || too_high) && t->nlo[c] < t->nup[c];
}

static inline double bound_value(const tableau *t, int32_t c) {
    return t->at[c] == AT_LOWER ? t->nlo[c] : t->at[c] == AT_UPPER ? t->nup[c] : 0.0;
}

static bool dual_feasible(const tableau *t, double tolerance) {
    for (int32_t c = 0; c < t->cols; c++)
        if (is_dual_infeasible(t, c, t->at[c], tolerance))
            return false;
    return true;
}

static void recompute(tableau *t) {
    multiply(t->t, t->rows, t->stride, t->xn, t->xb);
    t->moved = false;
}

/* Put every nonbasic variable on the bound that its reduced cost asks for, and compute the basic ones; false where a
 * variable has no such bound. */
static bool set_nonbasic_values(tableau *t, double tolerance) {
    if (t->fresh) {
        for (int32_t c = 0; c < t->cols; c++)
            t->nlo[c] = t->lo[t->nonbasic[c]], t->nup[c] = t->up[t->nonbasic[c]];
        for (int32_t r = 0; r < t->rows; r++) {
            t->blo[r] = t->lo[t->basic[r]], t->bup[r] = t->up[t->basic[r]];
            t->weight[r] = 1.0;
        }
        t->fresh = false;
    }
    for (int32_t c = 0; c < t->cols; c++)
        if (is_dual_infeasible(t, c, dual_feasible_bound(t, c, tolerance), tolerance))
            return false;
    for (int32_t c = 0; c < t->cols; c++) {
        t->at[c] = dual_feasible_bound(t, c, tolerance);
        t->xn[c] = bound_value(t, c);
    }
    recompute(t);
    return true;
}

static void move(tableau *t, int32_t c, double step) {
    t->xn[c] += step;
    for (int32_t r = 0; r < t->rows; r++)
        t->xb[r] += t->t[(size_t)r * (size_t)t->stride + (size_t)c] * step;
    t->moved = true;
}

/* New bounds for a variable; one that is nonbasic moves with them. False where it has no dual feasible bound left. */
static bool set_bounds(tableau *t, int32_t variable, double lo, double up, double tolerance) {
    const int32_t place = t->place[variable], c = -1 - place;
    t->lo[variable] = lo;
    t->up[variable] = up;
    if (t->fresh)
        return true;
    if (place >= 0) {
        t->blo[place] = lo;
        t->bup[place] = up;
        return true;
    }
    t->nlo[c] = lo;
    t->nup[c] = up;
    const int8_t at = dual_feasible_bound(t, c, tolerance);
    if (is_dual_infeasible(t, c, at, tolerance))
        return false;
    t->at[c] = at;
    const double value = bound_value(t, c), step = value - t->xn[c];
    if (step != 0.0)
        move(t, c, step);
    t->xn[c] = value;
    return true;
}

#endif
