/* The basis kernel of an LP too large for a tableau: the compiled twin of pycobre/solver/reference/kernel.py.
 *
 * Rows whose logical is basic add nothing to a factorisation, so only the inverse of the kernel is kept: of the rows
 * whose logical is nonbasic by the structural columns that are basic. It is the part of the tableau that belongs to
 * those columns and logicals, hence every exchange adds a multiple of one row to others, whatever enters and leaves.
 * Sums run over entries in a fixed order or over whole lines; nothing here touches HiGHS or Python. */
#ifndef PYCOBRE_LP_KERNEL_H
#define PYCOBRE_LP_KERNEL_H

#include "lp_tableau.h"

#define INVERSE_SMALLEST 1e-12 /* entries of the inverse below this are rounding of zero, and are set to it */

enum { RISES = 1, FALLS = 2 };
enum { OUTSIDE = 4 }; /* the status of a variable that cannot move or was dropped, beside those of the tableau */

/* A column in the pivot row: its entry, where it can move while nonbasic (RISES, FALLS or both), whether it is listed. */
typedef struct {
    double alpha;
    uint8_t free_to, mark;
} pivot_column;

/* A variable that may enter: its entry in the pivot row, how far its reduced cost is from zero, and the step that takes
 * it there and a tolerance beyond. */
typedef struct {
    int32_t variable;
    double entry, gap, reach;
} candidate;

typedef struct {
    const lp_model *m;
    /* the base rows by row, of active columns only */
    int32_t *row_start, *row_col;
    double *row_value;
    int32_t *known, known_size; /* outputs whose columns are defined: known before anything is decided */
    /* pool rows: their columns that are left, and their coefficients [pool_room][width] */
    int32_t width, stride_pool;
    int32_t *pool_col;   /* [width], θ first */
    int32_t *pool_at;    /* by structural column: its place in pool_col, -1 = none */
    double *pool_value;  /* [pool_room][stride_pool], */
    double *pool_by_col; /* and the same by column, [width][pool_room] */
    int32_t *slot;       /* by pool row: its slot, -1 = dropped */
    int32_t pool_rows, pool_room;
    /* by variable: columns, base rows, pool rows in the order in which they came */
    double *lo, *up, *x, *d, *weight;
    int8_t *at;
    uint8_t *free_to; /* of logicals, as `pivot_column` has it of columns */
    uint8_t *listed;  /* whether it is in `outside` */
    int32_t *outside; /* basic variables that may be outside their bounds: all that are, and some that were */
    /* by row, base rows first */
    double *shift; /* what its activity is without the columns that are left: what fixed and defined columns add; */
    double *fixed; /* and what the fixed ones alone do */
    double *work, *size, *price;
    double *row_lo, *row_up; /* bounds of the base rows as they are in the LP */
    int32_t *row_pos;        /* its column of the inverse, -1 where its logical is basic */
    int32_t *row_list;
    uint8_t *row_mark;
    int8_t *wanted; /* by variable: the basis to install */
    /* by structural column */
    int32_t *col_pos; /* its row of the inverse, -1 where it is nonbasic */
    int32_t *definer; /* the row that defines it, -1 = none */
    double *z, *cost, *dual, *dual_size;
    pivot_column *pivot;
    int32_t *col_list, *order, *count;
    /* the inverse */
    int32_t k, room, stride;                  /* `k` rows and columns, free ones included */
    double *w;                                /* [room][stride], few of which are not zero: */
    int32_t *row_nz, *row_len;                /* the columns of each row that are not, [room][stride] */
    int32_t *col_nz, *col_len;                /* the rows of each column, alike */
    int32_t *kcol;                            /* column by row of the inverse, -1 = free */
    int32_t *krow;                            /* row by column of the inverse, -1 = free */
    int32_t *free_row, *free_col, free_slots; /* the free ones, the last is taken first */
    double *rho;                              /* [stride]: the pivot row, over the logicals of krow */
    double *col;                              /* [stride]: the entering column, over kcol */
    double *moved;                            /* [stride]: scratch of the same kind */
    int32_t *rho_nz, *hit, rho_len, hits;     /* places of rho, and of the column solved last, that are not zero */
    candidate *candidates;
    int32_t rows_touched, cols_touched, outside_count;
    double primal_tolerance;
    int32_t pivots, updates; /* of this solve; since the inverse was computed */
    bool fresh;              /* just built: weights are not set */
    bool changed;            /* values were updated since they were computed */
} kernel;

static int32_t kernel_rows(const kernel *t) {
    return t->m->num_row + t->pool_rows;
}

static void kernel_free(kernel *t) {
    FREE(t->row_start), FREE(t->row_col), FREE(t->row_value), FREE(t->pool_col), FREE(t->pool_at), FREE(t->pool_value),
        FREE(t->pool_by_col);
    FREE(t->slot), FREE(t->lo), FREE(t->up), FREE(t->x), FREE(t->d), FREE(t->weight), FREE(t->at), FREE(t->shift);
    FREE(t->work), FREE(t->size), FREE(t->row_pos), FREE(t->row_list), FREE(t->row_mark), FREE(t->wanted);
    FREE(t->col_pos), FREE(t->z), FREE(t->cost), FREE(t->dual), FREE(t->dual_size), FREE(t->pivot), FREE(t->col_list);
    FREE(t->order), FREE(t->count), FREE(t->listed), FREE(t->outside), FREE(t->w), FREE(t->kcol), FREE(t->krow), FREE(t->rho),
        FREE(t->col);
    FREE(t->moved), FREE(t->rho_nz), FREE(t->hit), FREE(t->candidates), FREE(t->free_to);
    FREE(t->fixed), FREE(t->price), FREE(t->row_lo), FREE(t->row_up), FREE(t->definer), FREE(t->known);
    FREE(t->free_row), FREE(t->free_col), FREE(t->row_nz), FREE(t->row_len), FREE(t->col_nz), FREE(t->col_len);
    t->pool_room = t->room = t->k = t->free_slots = t->pool_rows = 0;
    t->m = NULL;
}

static const double *pool_row(const kernel *t, int32_t p) {
    return t->pool_value + (size_t)p * (size_t)t->stride_pool;
}

/* The coefficients of all pool rows in one of their columns. */
static const double *pool_column(const kernel *t, int32_t at) {
    return t->pool_by_col + (size_t)at * (size_t)t->pool_room;
}

/* Room for `pool_rows` pool rows. */
static bool kernel_reserve_rows(kernel *t, int32_t pool_rows) {
    const lp_model *m = t->m;
    if (t->slot != NULL && pool_rows <= t->pool_room)
        return true;
    const int32_t room = pool_rows + 64, rows = m->num_row + room, all = m->num_col + rows;
    const int32_t known = t->listed == NULL ? 0 : all - room + t->pool_room;
    if (!(RESIZE(t->slot, room) && RESIZE(t->lo, all) && RESIZE(t->up, all) && RESIZE(t->x, all) && RESIZE(t->d, all) &&
          RESIZE(t->weight, all) && RESIZE(t->at, all) && RESIZE(t->shift, rows) && RESIZE(t->work, rows) &&
          RESIZE(t->size, rows) && RESIZE(t->fixed, rows) && RESIZE(t->row_pos, rows) && RESIZE(t->row_list, rows + 1) &&
          RESIZE(t->row_mark, rows) && RESIZE(t->wanted, all) && RESIZE(t->candidates, all) &&
          RESIZE(t->free_to, all) && RESIZE(t->listed, all) && RESIZE(t->outside, all) &&
          RESIZE(t->pool_value, (size_t)room * (size_t)t->stride_pool)))
        return false;
    double *by_col = malloc((size_t)room * (size_t)(t->width + 1) * sizeof(double));
    if (by_col == NULL)
        return false;
    for (int32_t at = 0; at < t->width; at++)
        for (int32_t p = 0; p < t->pool_rows; p++)
            by_col[(size_t)at * (size_t)room + (size_t)p] = pool_row(t, p)[at];
    free(t->pool_by_col);
    t->pool_by_col = by_col;
    memset(t->row_mark, 0, (size_t)rows);
    memset(t->listed + known, 0, (size_t)(all - known));
    for (int32_t r = 0; r < rows; r++)
        t->work[r] = 0.0;
    t->pool_room = room;
    return true;
}

/* Copy the first `k` items of `k` rows into rows of another length. */
static bool widen(int32_t **rows, int32_t k, int32_t from, int32_t room, int32_t to) {
    int32_t *larger = malloc((size_t)room * (size_t)to * sizeof(int32_t));
    if (larger == NULL)
        return false;
    for (int32_t i = 0; i < k; i++)
        memcpy(larger + (size_t)i * (size_t)to, *rows + (size_t)i * (size_t)from, (size_t)k * sizeof(int32_t));
    free(*rows);
    *rows = larger;
    return true;
}

/* Room for an inverse of `k` rows. The rows are an odd number of lines apart, so that a column of it is spread over the
 * sets of a cache. */
static bool kernel_reserve_inverse(kernel *t, int32_t k) {
    if (t->w != NULL && k <= t->room)
        return true;
    const int32_t room = k + k / 4 + 32, lines = (room + LINE) / LINE | 1, stride = lines * LINE;
    double *larger = calloc((size_t)room * (size_t)stride, sizeof(double));
    if (larger == NULL)
        return false;
    for (int32_t i = 0; i < t->k; i++)
        memcpy(larger + (size_t)i * (size_t)stride, t->w + (size_t)i * (size_t)t->stride,
               (size_t)t->k * sizeof(double));
    free(t->w);
    t->w = larger;
    if (!(widen(&t->row_nz, t->k, t->stride, room, stride) && widen(&t->col_nz, t->k, t->stride, room, stride) &&
          RESIZE(t->row_len, room) && RESIZE(t->col_len, room) && RESIZE(t->kcol, room) && RESIZE(t->krow, room) &&
          RESIZE(t->free_row, room) && RESIZE(t->free_col, room) && RESIZE(t->rho, stride) && RESIZE(t->col, stride) &&
          RESIZE(t->moved, stride) && RESIZE(t->rho_nz, stride) && RESIZE(t->hit, stride)))
        return false;
    for (int32_t c = t->k; c < stride; c++)
        t->rho[c] = t->col[c] = t->moved[c] = 0.0;
    t->room = room;
    t->stride = stride;
    return true;
}

/* Where a variable of this status can move. */
static inline void kernel_set_free(kernel *t, int32_t v) {
    const uint8_t ways = t->at[v] == AT_LOWER   ? RISES
                         : t->at[v] == AT_UPPER ? FALLS
                         : t->at[v] == AT_ZERO  ? RISES | FALLS
                                                : 0;
    uint8_t *free_to = v < t->m->num_col ? &t->pivot[v].free_to : &t->free_to[v];
    *free_to = t->lo[v] < t->up[v] ? ways : 0;
}

/* How far a variable is outside its bounds, negative within. */
static inline double outside_by(const kernel *t, int32_t v) {
    const double below = t->lo[v] - t->x[v], above = t->x[v] - t->up[v];
    return below > above ? below : above;
}

static void forget_outside(kernel *t) {
    for (int32_t k = 0; k < t->outside_count; k++)
        t->listed[t->outside[k]] = 0;
    t->outside_count = 0;
}

/* The value of a basic variable has changed: list it where it is outside its bounds. */
static inline void watch(kernel *t, int32_t v) {
    if (outside_by(t, v) > t->primal_tolerance && !t->listed[v]) {
        t->listed[v] = 1;
        t->outside[t->outside_count++] = v;
    }
}

/* ---- rows and columns of the tableau ---- */

static double *inverse_row(const kernel *t, int32_t i) {
    return t->w + (size_t)i * (size_t)t->stride;
}

static const int32_t *row_pattern(const kernel *t, int32_t i) {
    return t->row_nz + (size_t)i * (size_t)t->stride;
}

static const int32_t *col_pattern(const kernel *t, int32_t c) {
    return t->col_nz + (size_t)c * (size_t)t->stride;
}

/* to += factor * row i of the inverse */
static void add_inverse_row(const kernel *t, int32_t i, double factor, double *restrict to) {
    const double *row = inverse_row(t, i);
    const int32_t *pattern = row_pattern(t, i);
    for (int32_t e = 0; e < t->row_len[i]; e++)
        to[pattern[e]] += factor * row[pattern[e]];
}

/* to += factor * column c of the inverse */
static void add_inverse_column(const kernel *t, int32_t c, double factor, double *restrict to) {
    const int32_t *pattern = col_pattern(t, c);
    for (int32_t e = 0; e < t->col_len[c]; e++)
        to[pattern[e]] += factor * t->w[(size_t)pattern[e] * (size_t)t->stride + (size_t)c];
}

/* Add to `work` of a row, and remember that it was touched. */
static inline void touch_row(kernel *t, int32_t r, double add) {
    t->row_list[t->rows_touched] = r;
    t->rows_touched += !t->row_mark[r];
    t->row_mark[r] = 1;
    t->work[r] += add;
}

/* Add to the pivot row of a column that can move: others do not enter. */
static inline void touch_col(kernel *t, int32_t col, double add) {
    pivot_column *at = &t->pivot[col];
    if (at->free_to == 0)
        return;
    t->col_list[t->cols_touched] = col;
    t->cols_touched += !at->mark;
    at->mark = 1;
    at->alpha += add;
}

static void forget_rows(kernel *t) {
    for (int32_t i = 0; i < t->rows_touched; i++) {
        t->work[t->row_list[i]] = 0.0;
        t->row_mark[t->row_list[i]] = 0;
    }
    t->rows_touched = 0;
}

static void forget_cols(kernel *t) {
    for (int32_t i = 0; i < t->cols_touched; i++) {
        t->pivot[t->col_list[i]].alpha = 0.0;
        t->pivot[t->col_list[i]].mark = 0;
    }
    t->cols_touched = 0;
}

/* What a step of a nonbasic variable adds to the rows, into `work`: a column itself, or minus one for a logical. */
static void scatter_variable(kernel *t, int32_t variable, double step) {
    const lp_model *m = t->m;
    if (variable >= m->num_col) {
        touch_row(t, variable - m->num_col, -step);
        return;
    }
    for (int32_t e = m->left_starts[variable]; e < m->left_starts[variable + 1]; e++)
        touch_row(t, m->left_rows[e], m->left_values[e] * step);
    const int32_t at = t->pool_at[variable];
    for (int32_t p = 0; at >= 0 && p < t->pool_rows; p++)
        if (t->slot[p] >= 0)
            touch_row(t, m->num_row + p, pool_column(t, at)[p] * step);
}

/* From what nonbasic variables add to the rows (in `work`) to what basic ones do in return: the columns of the kernel
 * into `to`, the basic logicals into `work`. */
static void solve_column(kernel *t, double *to) {
    const lp_model *m = t->m;
    const int32_t given = t->rows_touched;
    for (int32_t i = 0; i < t->k; i++)
        to[i] = 0.0;
    for (int32_t e = 0; e < given; e++) {
        const int32_t r = t->row_list[e], c = t->row_pos[r];
        if (c >= 0 && t->work[r] != 0.0)
            add_inverse_column(t, c, -t->work[r], to);
    }
    t->hits = 0;
    for (int32_t i = 0; i < t->k; i++) {
        if (fabs(to[i]) < INVERSE_SMALLEST) {
            to[i] = 0.0;
            continue;
        }
        t->hit[t->hits++] = i;
        const int32_t col = t->kcol[i], at = t->pool_at[col];
        for (int32_t e = m->left_starts[col]; e < m->left_starts[col + 1]; e++)
            touch_row(t, m->left_rows[e], m->left_values[e] * to[i]);
        for (int32_t p = 0; at >= 0 && p < t->pool_rows; p++)
            if (t->slot[p] >= 0)
                touch_row(t, m->num_row + p, pool_column(t, at)[p] * to[i]);
    }
}

/* The row of the inverse that belongs to a basic variable (a column, or the logical of a row), into `rho`. */
static void solve_row(kernel *t, int32_t variable) {
    const int32_t n = t->m->num_col, base = t->m->num_row, r = variable - n;
    for (int32_t c = 0; c < t->k; c++)
        t->rho[c] = 0.0;
    if (variable < n) {
        add_inverse_row(t, t->col_pos[variable], 1.0, t->rho);
    } else if (r < base) {
        for (int32_t e = t->row_start[r]; e < t->row_start[r + 1]; e++)
            if (t->col_pos[t->row_col[e]] >= 0)
                add_inverse_row(t, t->col_pos[t->row_col[e]], t->row_value[e], t->rho);
    } else {
        const double *values = pool_row(t, r - base);
        for (int32_t e = 0; e < t->width; e++)
            if (t->col_pos[t->pool_col[e]] >= 0 && values[e] != 0.0)
                add_inverse_row(t, t->col_pos[t->pool_col[e]], values[e], t->rho);
    }
    t->rho_len = 0;
    for (int32_t c = 0; c < t->k; c++) {
        if (fabs(t->rho[c]) < INVERSE_SMALLEST)
            t->rho[c] = 0.0;
        else
            t->rho_nz[t->rho_len++] = c;
    }
}

/* Subtract `factor` times row r from the entries of the structural columns, in `pivot`. */
static void subtract_row(kernel *t, int32_t r, double factor) {
    const int32_t base = t->m->num_row;
    if (r < base) {
        for (int32_t e = t->row_start[r]; e < t->row_start[r + 1]; e++)
            touch_col(t, t->row_col[e], -(t->row_value[e] * factor));
        return;
    }
    const double *values = pool_row(t, r - base);
    for (int32_t e = 0; e < t->width; e++)
        touch_col(t, t->pool_col[e], -(values[e] * factor));
}

/* ---- the exchange ---- */

static inline bool is_absent(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits == 0;
}

/* Write an entry of the inverse, and take it into the patterns where it is new. A zero that is in them is written as -0,
 * one that is not is +0. */
static inline void put_entry(kernel *t, int32_t i, int32_t c, double value) {
    double *at = inverse_row(t, i) + c;
    if (is_absent(*at)) {
        t->row_nz[(size_t)i * (size_t)t->stride + (size_t)t->row_len[i]++] = c;
        t->col_nz[(size_t)c * (size_t)t->stride + (size_t)t->col_len[c]++] = i;
    }
    *at = value == 0.0 ? -0.0 : value;
}

static void scale_row(kernel *t, int32_t i, double factor) {
    for (int32_t e = 0; e < t->row_len[i]; e++) {
        double *at = inverse_row(t, i) + row_pattern(t, i)[e];
        const double value = *at * factor;
        *at = value == 0.0 ? -0.0 : value;
    }
}

static void scale_column(kernel *t, int32_t c, double factor) {
    for (int32_t e = 0; e < t->col_len[c]; e++) {
        double *at = inverse_row(t, col_pattern(t, c)[e]) + c;
        const double value = *at * factor;
        *at = value == 0.0 ? -0.0 : value;
    }
}

/* One entry of the inverse after an exchange; what is rounding of zero stays zero, in the patterns or not. */
static inline double updated_entry(double old, double factor, double rho) {
    const double sum = old + factor * rho, rest = old == 0.0 ? old : -0.0;
    return fabs(sum) < INVERSE_SMALLEST ? rest : sum;
}

/* Add -col / entry times rho to the rows of the inverse, but for row `skip_row` and column `skip_col`, which are replaced
 * as a whole. */
static void add_outer(kernel *t, double entry, int32_t skip_row, int32_t skip_col) {
    for (int32_t h = 0; h < t->hits; h++) {
        const int32_t i = t->hit[h];
        if (i == skip_row)
            continue;
        const double factor = -(t->col[i] / entry);
        double *row = inverse_row(t, i);
        int32_t *pattern = t->row_nz + (size_t)i * (size_t)t->stride + (size_t)t->row_len[i], count = 0;
        for (int32_t e = 0; e < t->rho_len; e++) { /* few branches: they would be hard to predict */
            const int32_t c = t->rho_nz[e];
            if (c == skip_col)
                continue;
            const double old = row[c], value = updated_entry(old, factor, t->rho[c]);
            row[c] = value;
            pattern[count] = c;
            count += is_absent(old) & (value != 0.0);
        }
        for (int32_t e = 0; e < count; e++)
            t->col_nz[(size_t)pattern[e] * (size_t)t->stride + (size_t)t->col_len[pattern[e]]++] = i;
        t->row_len[i] += count;
    }
}

/* Exchange a basic variable for a nonbasic one in the inverse, whose pivot row is in `rho` and entering column in `col`.
 * `leaving` is the row of the inverse of a column that leaves, or -1 - the LP row of a logical; `entering` is a column of
 * the LP, or -1 - the inverse's column of a logical. There is room for another row. */
static void exchange_kernel(kernel *t, int32_t leaving, int32_t entering, double entry) {
    const double inverse = 1.0 / entry;
    int32_t i = leaving < 0 ? -1 : leaving, c = entering < 0 ? -1 - entering : -1;
    t->updates++;
    add_outer(t, entry, i, c);
    if (i >= 0)
        t->col_pos[t->kcol[i]] = -1;
    if (c >= 0)
        t->row_pos[t->krow[c]] = -1;
    if (i >= 0 && c >= 0) { /* one less: row and column are free for others */
        scale_row(t, i, 0.0);
        scale_column(t, c, 0.0);
        t->kcol[i] = t->krow[c] = -1;
        t->free_row[t->free_slots] = i;
        t->free_col[t->free_slots++] = c;
        return;
    }
    if (i >= 0) {
        scale_row(t, i, -inverse);
    } else if (c >= 0) {
        scale_column(t, c, inverse);
    } else { /* one more */
        if (t->free_slots > 0) {
            i = t->free_row[--t->free_slots];
            c = t->free_col[t->free_slots];
        } else {
            i = c = t->k++;
            t->row_len[i] = t->col_len[c] = 0;
            t->kcol[i] = t->krow[c] = -1;
        }
        for (int32_t h = 0; h < t->hits; h++)
            put_entry(t, t->hit[h], c, t->col[t->hit[h]] * inverse);
        for (int32_t e = 0; e < t->rho_len; e++)
            put_entry(t, i, t->rho_nz[e], t->rho[t->rho_nz[e]] * -inverse);
        put_entry(t, i, c, inverse);
    }
    if (entering >= 0) {
        t->kcol[i] = entering;
        t->col_pos[entering] = i;
    }
    if (leaving < 0) {
        t->krow[c] = -1 - leaving;
        t->row_pos[-1 - leaving] = c;
    }
}

/* No kernel: all logicals basic. */
static void clear_inverse(kernel *t) {
    for (int32_t i = 0; i < t->k; i++)
        for (int32_t e = 0; e < t->row_len[i]; e++)
            inverse_row(t, i)[row_pattern(t, i)[e]] = 0.0;
    t->k = t->free_slots = 0;
}

#endif
