/* What comes from Python is checked before it is used: sizes, ranges of indices, arrays that belong together. */
#ifndef PYCOBRE_LP_CHECK_H
#define PYCOBRE_LP_CHECK_H

#include "lp_session.h"

enum { COUNT_LARGEST = 1 << 30 }; /* of a size that is multiplied or rounded up in 32 bits */

/* Whether all of `n` indices are from `least` on and below `end`. */
static bool indices_within(const int32_t *index, int32_t n, int32_t least, int32_t end) {
    for (int32_t k = 0; k < n; k++)
        if (index[k] < least || index[k] >= end)
            return false;
    return true;
}

/* Whether `n` + 1 starts rise from 0 to `end`. */
static bool rises(const int32_t *start, int32_t size, int32_t n, int32_t end) {
    if (size != n + 1 || start[0] != 0 || start[n] != end)
        return false;
    for (int32_t k = 0; k < n; k++)
        if (start[k] > start[k + 1])
            return false;
    return true;
}

/* Whether the columns that equations define, and the matrix without them, belong together. */
static bool definitions_fit(const lp_model *m) {
    const int32_t n = m->num_col, steps = m->defined_row_size;
    if (m->defined_col_size != steps || m->defined_pivot_size != steps ||
        m->defined_effect_value_size != m->defined_effect_row_size ||
        !rises(m->defined_starts, m->defined_starts_size, steps, m->defined_effect_row_size) ||
        !indices_within(m->defined_row, steps, 0, m->num_row) || !indices_within(m->defined_col, steps, 0, n) ||
        !indices_within(m->defined_effect_row, m->defined_effect_row_size, 0, m->num_row))
        return false;
    if (m->left_at_size != n || m->left_values_size != m->left_rows_size ||
        !rises(m->left_starts, m->left_starts_size, n, m->left_rows_size) ||
        !indices_within(m->left_rows, m->left_rows_size, 0, m->num_row) ||
        !indices_within(m->left, m->left_size, 0, n) || !indices_within(m->left_at, n, -1, m->left_size))
        return false;
    for (int32_t a = 0; a < m->left_size; a++)
        if (m->left_at[m->left[a]] != a || m->active_at[m->left[a]] < 0 || (a > 0 && m->left[a] <= m->left[a - 1]))
            return false;
    for (int32_t col = 0; col < n; col++)
        if ((m->left_at[col] >= 0 && m->left[m->left_at[col]] != col) ||
            (m->left_at[col] < 0 && m->left_starts[col] != m->left_starts[col + 1]))
            return false;
    int32_t defined = 0; /* all columns that can move are left or defined, and none of the latter twice */
    for (int32_t d = 0; d < steps; d++)
        defined += m->left_at[m->defined_col[d]] < 0 && m->active_at[m->defined_col[d]] >= 0;
    for (int32_t d = 1; d < steps; d++)
        for (int32_t e = 0; e < d; e++)
            if (m->defined_row[e] == m->defined_row[d] || m->defined_col[e] == m->defined_col[d])
                return false;
    return defined == steps && m->left_size + steps == m->active_size;
}

/* The first thing that is wrong with a model, or NULL. */
static const char *model_fault(const lp_model *m) {
#define SAME(a, b) ((a) == (b))
    const int32_t n = m->num_col, rows = m->num_row, set = m->row_set_size, in = m->inputs_size, out = m->outputs_size;
    if (n < 0 || rows < 0 || n > COUNT_LARGEST || rows > COUNT_LARGEST)
        return "the numbers of columns and rows";
    if (!SAME(m->cost_size, n) || !SAME(m->col_lower_size, n) || !SAME(m->col_upper_size, n) ||
        !SAME(m->col_scale_size, n) || !SAME(m->active_at_size, n))
        return "arrays by column";
    if (!SAME(m->row_lower_size, rows) || !SAME(m->row_upper_size, rows) || !SAME(m->row_scale_size, rows))
        return "arrays by row";
    if (!SAME(m->rows_size, m->values_size) || !rises(m->starts, m->starts_size, n, m->rows_size) ||
        !indices_within(m->rows, m->rows_size, 0, rows))
        return "the matrix";
    if (!SAME(m->row_set_lower_size, set) || !SAME(m->row_set_upper_size, set) || !SAME(m->row_set_factor_size, set) ||
        !indices_within(m->row_set, set, 0, rows) || !SAME(m->row_at_size, m->row_from_size) ||
        !SAME(m->row_sides_size, m->row_from_size) || !indices_within(m->row_at, m->row_at_size, 0, set))
        return "the patches of rows";
    const int32_t cols = m->col_set_size;
    if (!SAME(m->col_set_lower_size, cols) || !SAME(m->col_set_upper_size, cols) ||
        !SAME(m->col_set_factor_size, cols) || !indices_within(m->col_set, cols, 0, n) ||
        !SAME(m->col_at_size, m->col_from_size) || !SAME(m->col_sides_size, m->col_from_size) ||
        !indices_within(m->col_at, m->col_at_size, 0, cols))
        return "the patches of columns";
    if (!SAME(m->cost_from_size, m->cost_set_size) || !SAME(m->cost_factor_size, m->cost_set_size) ||
        !indices_within(m->cost_set, m->cost_set_size, 0, n))
        return "the patches of costs";
    if (!SAME(m->coef_col_size, m->coef_row_size) || !SAME(m->coef_from_size, m->coef_row_size) ||
        !SAME(m->coef_factor_size, m->coef_row_size) || !indices_within(m->coef_row, m->coef_row_size, 0, rows) ||
        !indices_within(m->coef_col, m->coef_row_size, 0, n))
        return "the patches of coefficients";
    if (!SAME(m->input_set_size, in) || !SAME(m->input_at_size, in) || !SAME(m->input_factor_size, in) ||
        !SAME(m->gradient_factor_size, in) || !indices_within(m->inputs, in, 0, n) ||
        !indices_within(m->input_set, in, 0, n) || !indices_within(m->input_at, in, 0, in))
        return "the incoming state";
    if (!SAME(m->output_factor_size, out) || !SAME(m->output_lower_size, out) || !SAME(m->output_upper_size, out) ||
        !SAME(m->output_col_at_size, out) || !SAME(m->output_input_at_size, out) || !SAME(m->slope_factor_size, out) ||
        !indices_within(m->outputs, out, 0, n) || !indices_within(m->output_col_at, out, -1, cols) ||
        !indices_within(m->output_input_at, out, -1, in))
        return "the outgoing state";
    const int32_t floors = m->floor_limit_size;
    if (!SAME(m->floor_at_size, floors) || !indices_within(m->floor_at, floors, 0, set) ||
        !SAME(m->floor_coef_size, m->floor_input_size) ||
        !rises(m->floor_starts, m->floor_starts_size, floors, m->floor_input_size) ||
        !indices_within(m->floor_input, m->floor_input_size, 0, in) || !SAME(m->effect_at_size, m->effect_floor_size) ||
        !SAME(m->effect_multiplier_size, m->effect_floor_size) ||
        !indices_within(m->effect_floor, m->effect_floor_size, 0, floors) ||
        !indices_within(m->effect_at, m->effect_floor_size, 0, set))
        return "the corrections of right-hand sides";
    if (!indices_within(m->active, m->active_size, 0, n) || !indices_within(m->active_at, n, -1, m->active_size))
        return "the columns that can move";
    for (int32_t a = 0; a < m->active_size; a++)
        if (m->active_at[m->active[a]] != a || (a > 0 && m->active[a] <= m->active[a - 1]))
            return "the columns that can move";
    for (int32_t col = 0; col < n; col++)
        if (m->active_at[col] >= 0 && m->active[m->active_at[col]] != col)
            return "the columns that can move";
    if (!rises(m->part_starts, m->part_starts_size, m->part_kind_size, out))
        return "the parts of the outgoing state";
    if (!definitions_fit(m))
        return "the columns that equations define";
    return m->head < -1 || m->head >= n || m->offset_from < -1 ? "the numbers" : NULL;
#undef SAME
}

/* Whether `count` times `each` items are a number that can be counted and allocated. */
static bool countable(int64_t count, int64_t each) {
    return count >= 0 && each >= 0 && (each == 0 || count <= INT64_MAX / 64 / each);
}

/* The first thing that is wrong with the counts of a block, or NULL; nothing is read yet. */
static const char *count_fault(const lp_model *m, const lp_block *b, const pool_view *pool, int32_t begin,
                               int32_t end) {
    const int64_t widest = (int64_t)m->num_col + m->num_row + m->inputs_size + m->outputs_size + 1;
    if (b->chains < 0 || b->chains > COUNT_LARGEST || begin < 0 || begin > end || end > b->chains)
        return "a range of chains";
    if (b->openings < 0 || !countable((int64_t)b->chains * b->openings, widest))
        return "the number of openings";
    if (b->plan < 0 || !countable((int64_t)b->chains * b->openings, b->plan))
        return "the number of patched places";
    if (b->starts < 0 || (b->starts > 1 && b->starts != b->chains))
        return "no starting basis, one, or one per chain";
    if (pool->count < 0 || pool->count > COUNT_LARGEST || pool->width < 0 || !countable(pool->count, pool->width))
        return "the number of cuts";
    const int32_t most = b->rows_per_round > b->seed_rows ? b->rows_per_round : b->seed_rows;
    if (b->rows_per_round < 0 || b->seed_rows < 0 || most > COUNT_LARGEST ||
        (int64_t)(b->lazy || most > pool->count ? most : pool->count) * 2 * (m->outputs_size + 1) > INT32_MAX)
        return "the numbers of cuts that join";
    if (b->tableau_entries < 0 || b->kernel_rows < 0 || b->iteration_limit < 0)
        return "limits from 0 on";
    const int32_t *from[] = {m->row_from, m->col_from, m->cost_from, m->coef_from};
    const int32_t sizes[] = {m->row_from_size, m->col_from_size, m->cost_from_size, m->coef_from_size};
    for (int k = 0; k < 4; k++)
        if (!indices_within(from[k], sizes[k], 0, b->plan))
            return "a patch vector that holds every patched place";
    return m->offset_from >= b->plan ? "a patch vector that holds every patched place" : NULL;
}

/* The first thing that is wrong with the arrays of a block, or NULL. */
static const char *block_fault(const lp_model *m, const lp_block *b, int64_t slots) {
    if (b->x == NULL || b->values == NULL || b->objective == NULL || b->gradient == NULL || b->output == NULL ||
        b->head == NULL || b->iterations == NULL || b->rounds == NULL || b->retries == NULL || b->by_highs == NULL ||
        b->rejected == NULL || b->certified == NULL)
        return "states, values and results";
    if ((b->primal == NULL) != (b->col_dual == NULL) || (b->primal == NULL) != (b->row_dual == NULL))
        return "primal values and both duals, or none of them";
    if ((b->basis_col == NULL) != (b->basis_row == NULL) || (b->basis_col == NULL) != (b->basis_count == NULL) ||
        (b->basis_col == NULL) != (b->basis_owner == NULL))
        return "all arrays of the bases, or none";
    /* Marks without a counter are right: a chain of a shared block that is finished after its recovery. */
    if (b->dealt != NULL && (b->taken == NULL || b->basis_col != NULL))
        return "marks and no bases beside the counter of a shared block";
    if (b->pool != NULL && m->head < 0)
        return "no cuts for a model without their column";
    if (b->starts == 0)
        return NULL;
    if (b->start_known == NULL || b->start_col == NULL || b->start_row == NULL || b->start_pool == NULL ||
        b->start_slots == NULL || slots > INT32_MAX ||
        !rises(b->start_pool, b->starts + 1, b->starts, (int32_t)slots) ||
        !indices_within(b->start_slots, (int32_t)slots, 0, INT32_MAX))
        return "starting bases with rising starts of their cuts";
    for (int64_t k = 0; k < (int64_t)b->starts * m->num_col; k++)
        if (b->start_col[k] < AT_LOWER || b->start_col[k] > 4)
            return "starting bases of known statuses";
    for (int64_t k = 0; k < (int64_t)b->starts * m->num_row; k++)
        if (b->start_row[k] < AT_LOWER || b->start_row[k] > 4)
            return "starting bases of known statuses";
    return NULL;
}

#endif
