/* A prepared model as C sees it (pycobre/solver/prepare.py says what the arrays mean), and memory that grows. */
#ifndef PYCOBRE_LP_MODEL_H
#define PYCOBRE_LP_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Arrays of a prepared model, in the order in which Python passes them: A(type, name). */
/* clang-format off */
#define MODEL_ARRAYS(A)                                                                                       \
    A(double, cost) A(double, col_lower) A(double, col_upper) A(double, row_lower) A(double, row_upper)       \
    A(int32_t, starts) A(int32_t, rows) A(double, values) A(double, row_scale) A(double, col_scale)           \
    A(int32_t, row_set) A(double, row_set_lower) A(double, row_set_upper) A(double, row_set_factor)           \
    A(int32_t, row_from) A(int32_t, row_at) A(int8_t, row_sides)                                              \
    A(int32_t, col_set) A(double, col_set_lower) A(double, col_set_upper) A(double, col_set_factor)           \
    A(int32_t, col_from) A(int32_t, col_at) A(int8_t, col_sides)                                              \
    A(int32_t, cost_set) A(int32_t, cost_from) A(double, cost_factor)                                         \
    A(int32_t, coef_row) A(int32_t, coef_col) A(int32_t, coef_from) A(double, coef_factor)                    \
    A(int32_t, inputs) A(int32_t, input_set) A(int32_t, input_at) A(double, input_factor)                     \
    A(double, gradient_factor)                                                                                \
    A(int32_t, outputs) A(double, output_factor) A(double, output_lower) A(double, output_upper)              \
    A(int32_t, output_col_at) A(int32_t, output_input_at) A(double, slope_factor)                             \
    A(double, floor_limit) A(int32_t, floor_at) A(int32_t, floor_starts) A(int32_t, floor_input)              \
    A(double, floor_coef) A(int32_t, effect_floor) A(int32_t, effect_at) A(double, effect_multiplier)         \
    A(int32_t, active) A(int32_t, active_at)                                                                  \
    A(int32_t, defined_row) A(int32_t, defined_col) A(double, defined_pivot) A(int32_t, defined_starts)       \
    A(int32_t, defined_effect_row) A(double, defined_effect_value)                                            \
    A(int32_t, left_starts) A(int32_t, left_rows) A(double, left_values) A(int32_t, left) A(int32_t, left_at) \
    A(int8_t, part_kind) A(int32_t, part_starts)
/* clang-format on */

typedef struct {
#define MEMBER(type, name) \
    const type *name;      \
    int32_t name##_size;
    MODEL_ARRAYS(MEMBER)
#undef MEMBER
    int32_t num_col, num_row, offset_from, head;
    double offset, cost_scale, head_factor, pool_factor;
} lp_model;

#define FREE(pointer) (free(pointer), (pointer) = NULL)

/* Give `array` room for `count` items; false (and the array as it was) when memory is short. */
#define RESIZE(array, count) resize((void **)&(array), (size_t)(count) * sizeof *(array))

static bool resize(void **array, size_t bytes) {
    void *larger = realloc(*array, bytes > 0 ? bytes : 1);
    if (larger != NULL)
        *array = larger;
    return larger != NULL;
}

#endif
