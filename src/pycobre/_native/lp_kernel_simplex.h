/* The dual simplex on the basis kernel, and the certificate of its answers. */
#ifndef PYCOBRE_LP_KERNEL_SIMPLEX_H
#define PYCOBRE_LP_KERNEL_SIMPLEX_H

#include "lp_kernel_basis.h"
#include "lp_simplex.h"

#define PIVOT_AGREEMENT 1e-7 /* of a pivot by row and by column: beyond it the inverse has drifted */

enum { KERNEL_UPDATES = 200 }; /* exchanges after which the inverse is computed anew */
#define RENEWED_TOLERANCE 100.0 /* times the dual one for reduced costs computed anew: further pivots may mend them */

/* The basic variable that is outside its bounds by the largest square over its weight (ties: the first), or -1; those
 * listed that are within again, or nonbasic, leave the list. */
static int32_t kernel_choose_row(kernel *t) {
    int32_t best = -1;
    double largest = 0.0;
    for (int32_t k = 0; k < t->outside_count;) {
        const int32_t v = t->outside[k];
        const double outside = outside_by(t, v);
        if (t->at[v] != IS_BASIC || !(outside > t->primal_tolerance)) {
            t->listed[v] = 0;
            t->outside[k] = t->outside[--t->outside_count];
            continue;
        }
        const double merit = outside * outside / t->weight[v];
        if (merit > largest || (merit == largest && merit > 0.0 && v < best)) {
            best = v;
            largest = merit;
        }
        k++;
    }
    return best;
}

/* The row of a basic variable: over logicals of the kernel into `rho`, over columns into `pivot`. */
static void compute_pivot_row(kernel *t, int32_t leaving) {
    const int32_t n = t->m->num_col;
    solve_row(t, leaving);
    for (int32_t e = 0; e < t->rho_len; e++)
        subtract_row(t, t->krow[t->rho_nz[e]], t->rho[t->rho_nz[e]]);
    if (leaving >= n)
        subtract_row(t, leaving - n, -1.0);
}

/* Take a nonbasic variable with this entry as a candidate where it can move the row up (`sign` 1) or down (-1). */
static inline int32_t add_candidate(kernel *t, int32_t count, int32_t v, double entry, uint8_t free_to, double sign,
                                    double tolerance) {
    const double a = sign * entry, size = fabs(entry);
    if (!(size > PIVOT_SMALLEST && (free_to & (a > 0.0 ? RISES : FALLS))))
        return count;
    const double gap = fabs(t->d[v]);
    t->candidates[count] = (candidate){v, entry, gap, (gap + tolerance) / size};
    return count + 1;
}

static int32_t gather_candidates(kernel *t, double sign, double tolerance) {
    const int32_t n = t->m->num_col;
    int32_t count = 0;
    for (int32_t e = 0; e < t->rho_len; e++) {
        const int32_t c = t->rho_nz[e], v = n + t->krow[c];
        count = add_candidate(t, count, v, t->rho[c], t->free_to[v], sign, tolerance);
    }
    for (int32_t e = 0; e < t->cols_touched; e++) {
        const int32_t col = t->col_list[e];
        const pivot_column *at = &t->pivot[col];
        count = add_candidate(t, count, col, at->alpha, at->free_to, sign, tolerance);
    }
    return count;
}

static inline void swap_candidates(kernel *t, int32_t a, int32_t b) {
    const candidate held = t->candidates[a];
    t->candidates[a] = t->candidates[b];
    t->candidates[b] = held;
}

static double smallest_reach(const kernel *t, int32_t n) {
    double smallest = INFINITY;
    for (int32_t k = 0; k < n; k++)
        smallest = t->candidates[k].reach < smallest ? t->candidates[k].reach : smallest;
    return smallest;
}

/* Bring to the front the candidates of the smallest steps, enough of them to make the row feasible by flips alone where
 * there are; the number of them. */
static int32_t select_near(kernel *t, int32_t n, double outside, double tolerance) {
    int32_t near = 0;
    double flips = 0.0;
    for (double limit = smallest_reach(t, n); near < n && flips < outside; limit = 8.0 * limit + tolerance)
        for (int32_t k = near; k < n; k++) {
            const candidate *each = &t->candidates[k];
            if (!(each->gap > limit * fabs(each->entry))) {
                flips += fabs(each->entry) * (t->up[each->variable] - t->lo[each->variable]);
                swap_candidates(t, near++, k);
            }
        }
    return near;
}

/* The variable that enters for a row that is `outside` its bound, after the bound flips that the ratio test allows (their
 * rows are added to `work`); -1 when the row cannot be made feasible. `entry` is its entry in the pivot row. */
static int32_t kernel_choose_column(kernel *t, double outside, double sign, double tolerance, double *entry) {
    for (int32_t n = gather_candidates(t, sign, tolerance); n > 0;) {
        const int32_t near = select_near(t, n, outside, tolerance);
        for (int32_t left = near; left > 0;) {
            const double bound = smallest_reach(t, left);
            int32_t best = -1;
            double largest = 0.0;
            for (int32_t k = 0; k < left; k++) {
                const double size = fabs(t->candidates[k].entry);
                if (size > largest && t->candidates[k].gap <= bound * size) {
                    best = k;
                    largest = size;
                }
            }
            if (best < 0)
                return -1; /* the reduced costs are no numbers any more */
            const int32_t v = t->candidates[best].variable;
            const double range = t->up[v] - t->lo[v];
            *entry = t->candidates[best].entry;
            if (!(outside - largest * range > 0.0))
                return v;
            outside -= largest * range;
            scatter_variable(t, v, t->at[v] == AT_LOWER ? range : -range);
            t->at[v] = t->at[v] == AT_LOWER ? AT_UPPER : AT_LOWER;
            t->x[v] = kernel_bound(t, v);
            kernel_set_free(t, v);
            swap_candidates(t, best, --left);
        }
        for (int32_t k = near; k < n; k++) /* those not near come to the front */
            swap_candidates(t, k - near, k);
        n -= near;
    }
    return -1;
}

/* Add `step` times the column in `to` and `work` to the basic variables. */
static void move_basic(kernel *t, const double *to, double step) {
    const int32_t n = t->m->num_col;
    for (int32_t h = 0; h < t->hits; h++) {
        const int32_t col = t->kcol[t->hit[h]];
        t->x[col] += to[t->hit[h]] * step;
        watch(t, col);
    }
    for (int32_t e = 0; e < t->rows_touched; e++) {
        const int32_t r = t->row_list[e];
        if (t->at[n + r] != IS_BASIC)
            continue;
        t->x[n + r] += t->work[r] * step;
        watch(t, n + r);
    }
    t->changed = true;
}

/* The basic variables follow the bound flips whose rows are in `work`. */
static void apply_flips(kernel *t) {
    if (t->rows_touched == 0)
        return;
    solve_column(t, t->moved);
    move_basic(t, t->moved, 1.0);
    forget_rows(t);
}

/* Devex: weights grow with the steps that rows take. */
static void kernel_update_devex_weights(kernel *t, int32_t leaving, int32_t entering, double entry) {
    const int32_t n = t->m->num_col;
    const double reference = t->weight[leaving] / (entry * entry);
    for (int32_t h = 0; h < t->hits; h++) {
        const int32_t i = t->hit[h];
        const double weight = t->col[i] * t->col[i] * reference;
        if (weight > t->weight[t->kcol[i]])
            t->weight[t->kcol[i]] = weight;
    }
    for (int32_t e = 0; e < t->rows_touched; e++) {
        const int32_t r = t->row_list[e];
        const double weight = t->work[r] * t->work[r] * reference;
        if (t->at[n + r] == IS_BASIC && weight > t->weight[n + r])
            t->weight[n + r] = weight;
    }
    t->weight[entering] = reference > 1.0 ? reference : 1.0;
}

static void update_reduced_costs(kernel *t, int32_t leaving, int32_t entering, double entry) {
    const int32_t n = t->m->num_col;
    const double step = t->d[entering] / entry;
    if (step != 0.0) {
        for (int32_t e = 0; e < t->rho_len; e++)
            t->d[n + t->krow[t->rho_nz[e]]] -= step * t->rho[t->rho_nz[e]];
        for (int32_t e = 0; e < t->cols_touched; e++) {
            const int32_t col = t->col_list[e];
            if (t->at[col] != IS_BASIC)
                t->d[col] -= step * t->pivot[col].alpha;
        }
    }
    t->d[entering] = 0.0;
    t->d[leaving] = step;
}

/* Exchange `leaving`, which goes to its lower bound when it rises, for `entering`; false where row and column disagree
 * on the pivot. */
static bool kernel_pivot(kernel *t, int32_t leaving, int32_t entering, double by_row, bool rise) {
    const int32_t n = t->m->num_col;
    scatter_variable(t, entering, 1.0);
    solve_column(t, t->col);
    const double entry = leaving < n ? t->col[t->col_pos[leaving]] : t->work[leaving - n];
    if (!(fabs(entry - by_row) <= PIVOT_AGREEMENT * (1.0 + fabs(by_row)) && fabs(entry) > PIVOT_SMALLEST))
        return false;
    const double bound = rise ? t->lo[leaving] : t->up[leaving], step = (bound - t->x[leaving]) / entry;
    move_basic(t, t->col, step);
    t->x[entering] += step;
    watch(t, entering);
    kernel_update_devex_weights(t, leaving, entering, entry);
    update_reduced_costs(t, leaving, entering, entry);
    t->x[leaving] = bound;
    t->at[leaving] = rise ? AT_LOWER : AT_UPPER;
    t->at[entering] = IS_BASIC;
    kernel_set_free(t, leaving);
    kernel_set_free(t, entering);
    exchange_kernel(t, leaving < n ? t->col_pos[leaving] : -1 - (leaving - n),
                    entering < n ? entering : -1 - t->row_pos[entering - n], entry);
    t->pivots++;
    return true;
}

/* Compute the inverse and all values anew; false where the basis is then far from dual feasible. */
static bool kernel_renew(kernel *t, const pool_view *pool, double dual) {
    return kernel_refactor(t, pool) && kernel_set_nonbasic_values(t, RENEWED_TOLERANCE * dual);
}

/* Exchange the basic variable v, which is outside its bounds; false where nothing can enter, or where row and column
 * disagree. */
static bool kernel_step(kernel *t, int32_t v, double dual) {
    const bool rise = t->x[v] < t->lo[v];
    const double outside = rise ? t->lo[v] - t->x[v] : t->x[v] - t->up[v];
    double entry = 0.0;
    compute_pivot_row(t, v);
    const int32_t entering = kernel_choose_column(t, outside, rise ? 1.0 : -1.0, 0.5 * dual, &entry);
    apply_flips(t);
    const bool exchanged = entering >= 0 && kernel_pivot(t, v, entering, entry, rise);
    forget_rows(t);
    forget_cols(t);
    return exchanged;
}

/* Pivot until every basic variable is within its bounds; false when that is not to be had. The inverse is computed anew
 * after many exchanges, and before it is believed that there is no other one. */
static bool kernel_iterate(kernel *t, const pool_view *pool, double dual, int32_t limit) {
    for (int32_t v = kernel_choose_row(t); v >= 0; v = kernel_choose_row(t)) {
        if (t->pivots >= limit || !kernel_reserve_inverse(t, t->k + 1))
            return false;
        const bool old = t->updates >= KERNEL_UPDATES;
        if (!old && kernel_step(t, v, dual))
            continue;
        if (t->updates == 0 || !kernel_renew(t, pool, dual))
            return false;
    }
    return true;
}

/* ---- the certificate ---- */

/* Whether columns and duals satisfy the LP's own rows and columns and give one objective; fills dual. */
static bool kernel_certify(kernel *t, const pool_view *pool) {
    const lp_model *m = t->m;
    const int32_t n = m->num_col;
    double *activity = t->work, *size = t->size; /* `work` is zero between solves: give it back so */
    bool holds = true;
    for (int32_t r = 0; r < m->num_row; r++)
        size[r] = 0.0;
    for (int32_t col = 0; col < n; col++) {
        double dual = t->cost[col], dual_size = fabs(dual);
        for (int32_t e = m->starts[col]; e < m->starts[col + 1]; e++) {
            const int32_t r = m->rows[e];
            const double term = m->values[e] * t->z[col], priced = m->values[e] * t->price[r];
            activity[r] += term;
            size[r] += fabs(term);
            dual -= priced;
            dual_size += fabs(priced);
        }
        t->dual[col] = dual;
        t->dual_size[col] = dual_size;
    }
    double primal = 0.0, bound = 0.0, terms = 1.0;
    for (int32_t p = 0; p < t->pool_rows; p++) {
        if (t->slot[p] < 0)
            continue;
        const double *slope = pool->slope + (size_t)t->slot[p] * (size_t)pool->width;
        const int32_t v = n + m->num_row + p;
        const double y = t->d[v];
        double reached = 0.0, reach = 0.0;
        for (int32_t k = -1; k < m->outputs_size; k++) {
            const int32_t col = k < 0 ? m->head : m->outputs[k];
            const double value = k < 0 ? 1.0 : slope[k] * m->slope_factor[k];
            const double term = value * t->z[col];
            reached += term;
            reach += fabs(term);
            t->dual[col] -= value * y;
            t->dual_size[col] += fabs(value * y);
        }
        const double value = t->x[v] + t->shift[m->num_row + p];
        holds &= fabs(reached - value) <= RESIDUAL_LARGEST * (1.0 + reach);
        bound += y * value;
        terms += fabs(y * value);
    }
    for (int32_t r = 0; r < m->num_row; r++) {
        const double value = t->row_lo[r] == t->row_up[r] ? t->row_lo[r] : t->x[n + r] + t->shift[r];
        holds &= fabs(activity[r] - value) <= RESIDUAL_LARGEST * (1.0 + size[r]);
        bound += t->price[r] * value;
        terms += fabs(t->price[r] * value);
        activity[r] = 0.0;
    }
    for (int32_t col = 0; col < n; col++) {
        if (m->active_at[col] >= 0)
            holds &= fabs(t->dual[col] - t->d[col]) <= RESIDUAL_LARGEST * (1.0 + t->dual_size[col]);
        const double reduced = (m->active_at[col] >= 0 ? t->d[col] : t->dual[col]) * t->z[col];
        primal += t->cost[col] * t->z[col];
        bound += reduced;
        terms += fabs(t->cost[col] * t->z[col]) + fabs(reduced);
    }
    return holds && fabs(primal - bound) <= RESIDUAL_LARGEST * terms;
}

#endif
