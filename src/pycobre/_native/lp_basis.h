/* Bases as statuses: from a chain's start, from and to HiGHS, from and to the tableau, and into the results. */
#ifndef PYCOBRE_LP_BASIS_H
#define PYCOBRE_LP_BASIS_H

#include "lp_session.h"

/* The statuses of the chain's start, for columns, base rows and the pool rows present; false where it has none. */
static bool start_statuses(lp_session *s, const lp_block *b, int32_t *missing) {
    const lp_model *m = s->model;
    const int32_t at = b->starts > 1 ? s->chain : 0;
    if (b->starts == 0 || !b->start_known[at])
        return false;
    const int8_t *cols = b->start_col + (size_t)at * (size_t)m->num_col;
    const int8_t *base = b->start_row + (size_t)at * (size_t)m->num_row;
    for (int32_t c = 0; c < m->num_col; c++)
        s->col_status[c] = cols[c];
    for (int32_t r = 0; r < m->num_row; r++)
        s->row_status[r] = base[r];
    *missing = b->start_pool[at + 1] - b->start_pool[at];
    for (int32_t r = 0; r < s->num_present; r++) {
        int32_t status = IS_BASIC;
        for (int32_t e = b->start_pool[at]; e < b->start_pool[at + 1] && status == IS_BASIC; e++)
            if (b->start_slots[e] == s->present[r]) {
                status = AT_LOWER;
                --*missing;
            }
        s->row_status[m->num_row + r] = status;
    }
    return true;
}

/* Forget what HiGHS remembers and start from the statuses at hand, `missing` of whose binding rows are not there. */
static void reset_highs(lp_session *s, bool known, int32_t missing) {
    const lp_model *m = s->model;
    s->lib->clearSolver(s->highs);
    if (!known || m->num_row + s->num_present == 0 || missing > 1 ||
        (missing == 1 && s->col_status[m->head] != IS_BASIC))
        return;
    if (missing == 1)
        s->col_status[m->head] = AT_LOWER;
    if (s->lib->setBasis(s->highs, s->col_status, s->row_status) != 0)
        s->lib->clearSolver(s->highs);
}

/* The statuses of the tableau's basis. */
static void tableau_statuses(lp_session *s) {
    const tableau *t = &s->tab;
    const lp_model *m = s->model;
    int32_t n = m->num_row;
    for (int32_t v = 0; v < m->num_col + m->num_row; v++) {
        const int32_t place = t->place[v];
        const int32_t status = place == GONE ? AT_LOWER : place < 0 ? t->at[-1 - place] : IS_BASIC;
        if (v < m->num_col)
            s->col_status[v] = status;
        else
            s->row_status[v - m->num_col] = status;
    }
    for (int32_t p = 0; p < t->pool_rows; p++)
        if (t->slot[p] >= 0) {
            const int32_t place = t->place[pool_variable(t, p)];
            s->row_status[n++] = place < 0 ? t->at[-1 - place] : IS_BASIC;
        }
}

/* Build the tableau of this chain with the basis of the statuses at hand (all logical where not `known`). */
static bool begin_tableau(lp_session *s, const lp_block *b, bool known) {
    tableau *t = &s->tab;
    const lp_model *m = s->model;
    const double *x = b->x + (size_t)s->chain * (size_t)m->inputs_size;
    if (t->m != m && !tableau_open(t, m))
        return false;
    memset(t->z, 0, (size_t)padded(m->num_col) * sizeof(double));
    memset(t->cost, 0, (size_t)padded(m->num_col) * sizeof(double));
    memcpy(t->cost, m->cost, (size_t)m->num_col * sizeof(double));
    for (int32_t c = 0; c < m->num_col; c++) {
        t->lo[c] = m->col_lower[c];
        t->up[c] = m->col_upper[c];
        if (m->active_at[c] < 0)
            t->z[c] = m->col_lower[c];
    }
    for (int32_t k = 0; k < m->inputs_size; k++)
        t->z[m->inputs[k]] = x[k] * m->input_factor[k];
    if (!tableau_reserve(t, m->num_row, s->num_present))
        return false;
    for (int32_t v = 0; v < m->num_col + m->num_row + s->num_present; v++) {
        const int32_t row = v - m->num_col;
        t->wanted[v] = (int8_t)(known     ? row < 0 ? s->col_status[v] : s->row_status[row]
                                : row < 0 ? AT_LOWER
                                          : IS_BASIC);
    }
    if (!tableau_build(t, b->pool, s->present, s->num_present))
        return false;
    for (int32_t r = 0; r < m->num_row; r++) {
        t->lo[row_variable(t, r)] = m->row_lower[r] - t->shift[r];
        t->up[row_variable(t, r)] = m->row_upper[r] - t->shift[r];
    }
    return true;
}

/* The statuses of the kernel's basis. */
static void kernel_statuses(lp_session *s) {
    const kernel *t = &s->ker;
    const lp_model *m = s->model;
    int32_t n = m->num_row;
    for (int32_t v = 0; v < m->num_col; v++)
        s->col_status[v] = t->at[v] == OUTSIDE ? AT_LOWER : t->at[v];
    for (int32_t r = 0; r < m->num_row; r++)
        s->row_status[r] = t->at[m->num_col + r];
    for (int32_t d = 0; d < m->defined_row_size; d++) {
        s->col_status[m->defined_col[d]] = t->at[m->num_col + m->defined_row[d]];
        s->row_status[m->defined_row[d]] = AT_LOWER;
    }
    for (int32_t p = 0; p < t->pool_rows; p++)
        if (t->slot[p] >= 0)
            s->row_status[n++] = t->at[m->num_col + m->num_row + p];
}

/* Build the kernel of this chain with the basis of the statuses at hand (all logical where not `known`). */
static bool begin_kernel(lp_session *s, const lp_block *b, bool known) {
    kernel *t = &s->ker;
    const lp_model *m = s->model;
    const double *x = b->x + (size_t)s->chain * (size_t)m->inputs_size;
    if ((t->m != m && !kernel_open(t, m)) || !kernel_reserve_rows(t, s->num_present))
        return false;
    memset(t->z, 0, (size_t)padded(m->num_col) * sizeof(double));
    memset(t->cost, 0, (size_t)padded(m->num_col) * sizeof(double));
    memcpy(t->cost, m->cost, (size_t)m->num_col * sizeof(double));
    for (int32_t c = 0; c < m->num_col; c++) {
        t->lo[c] = m->col_lower[c];
        t->up[c] = m->col_upper[c];
        if (m->active_at[c] < 0)
            t->z[c] = m->col_lower[c];
    }
    for (int32_t k = 0; k < m->inputs_size; k++)
        t->z[m->inputs[k]] = x[k] * m->input_factor[k];
    for (int32_t v = 0; v < m->num_col + m->num_row + s->num_present; v++) {
        const int32_t row = v - m->num_col;
        t->wanted[v] = (int8_t)(known     ? row < 0 ? s->col_status[v] : s->row_status[row]
                                : row < 0 ? AT_LOWER
                                          : IS_BASIC);
    }
    for (int32_t d = 0; d < m->defined_row_size; d++)
        t->wanted[m->num_col + m->defined_row[d]] = known ? t->wanted[m->defined_col[d]] : IS_BASIC;
    memcpy(t->row_lo, m->row_lower, (size_t)m->num_row * sizeof(double));
    memcpy(t->row_up, m->row_upper, (size_t)m->num_row * sizeof(double));
    kernel_fix(t);
    t->fresh = true;
    return kernel_build(t, b->pool, s->present, s->num_present);
}

/* The same of the engine that solves this chain. */
static void engine_statuses(lp_session *s) {
    if (s->engine == BY_KERNEL)
        kernel_statuses(s);
    else
        tableau_statuses(s);
}

static bool begin_engine(lp_session *s, const lp_block *b, bool known) {
    return s->engine == BY_KERNEL ? begin_kernel(s, b, known) : begin_tableau(s, b, known);
}

/* Keep the basis of the statuses at hand. */
static bool keep_basis(lp_session *s, const lp_block *b) {
    const lp_model *m = s->model;
    const size_t i = (size_t)s->chain;
    for (int32_t c = 0; c < m->num_col; c++)
        b->basis_col[i * (size_t)m->num_col + (size_t)c] = (int8_t)s->col_status[c];
    for (int32_t r = 0; r < m->num_row; r++)
        b->basis_row[i * (size_t)m->num_row + (size_t)r] = (int8_t)s->row_status[r];
    if (s->kept_slots == NULL || s->kept + s->num_present > s->kept_capacity) {
        const int32_t room = roomier(s->kept + s->num_present);
        if (!RESIZE(s->kept_slots, room))
            return false;
        s->kept_capacity = room;
    }
    const int32_t first = s->kept;
    for (int32_t r = 0; r < s->num_present; r++)
        if (s->row_status[m->num_row + r] != IS_BASIC)
            s->kept_slots[s->kept++] = s->present[r];
    sort_slots(s->kept_slots + first, s->kept - first);
    b->basis_count[i] = s->kept - first;
    b->basis_owner[i] = s->number;
    return true;
}

#endif
