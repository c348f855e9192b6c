/* Pool rows at a point, with the order of summation that pycobre/solver/pool.py defines:
 *
 *     p_j = sum over k = j mod 4 of slope_k * y_k,   value = intercept + ((p_0 + p_1) + (p_2 + p_3))
 *
 * The four partial sums are the four lanes of one vector, so any vector width gives the same bits; the build
 * forbids fused multiply-add. */
#ifndef PYCOBRE_LP_POOL_H
#define PYCOBRE_LP_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { POOL_STRETCH = 1024 }; /* a multiple of 8 */

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed between functions of this file only */
#endif
typedef double lanes __attribute__((vector_size(32)));

typedef struct {
    const double *intercept;
    const double *slope;   /* [count][width] */
    const uint8_t *active; /* or NULL */
    int32_t count;
    int32_t width;
    int32_t stride; /* from one row of `slope` to the next */
} pool_view;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

static inline lanes load(const double *from) {
    lanes loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int64_t picks __attribute__((vector_size(32)));
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (picks){i, j, k, l})
#endif

/* (p_0 + p_1) + (p_2 + p_3) of four rows at once. */
static inline lanes add_lanes(lanes a, lanes b, lanes c, lanes d) {
    const lanes ab = PICK(a, b, 0, 4, 2, 6) + PICK(a, b, 1, 5, 3, 7); /* a01 b01 a23 b23 */
    const lanes cd = PICK(c, d, 0, 4, 2, 6) + PICK(c, d, 1, 5, 3, 7);
    return PICK(ab, cd, 0, 1, 4, 5) + PICK(ab, cd, 2, 3, 6, 7);
}

/* The last `n` < 4 numbers of a row in the first lanes, zeros after them. */
static inline lanes load_some(const double *from, size_t n) {
    return (lanes){n > 0 ? from[0] : 0.0, n > 1 ? from[1] : 0.0, n > 2 ? from[2] : 0.0, 0.0};
}

/* The products with `point` of four rows of `width` numbers, the first at `row`. */
static inline __attribute__((always_inline)) lanes four_dots(const double *row, size_t stride, size_t width,
                                                                const double *point) {
    const double *r0 = row, *r1 = row + stride, *r2 = row + 2 * stride, *r3 = row + 3 * stride;
    const size_t whole = width & ~(size_t)3, tail = width & 3;
    lanes a = {0.0}, b = {0.0}, c = {0.0}, d = {0.0};
    for (size_t k = 0; k < whole; k += 4) {
        const lanes y = load(point + k);
        a += load(r0 + k) * y;
        b += load(r1 + k) * y;
        c += load(r2 + k) * y;
        d += load(r3 + k) * y;
    }
    if (tail > 0) {
        const lanes y = load_some(point + whole, tail);
        a += load_some(r0 + whole, tail) * y;
        b += load_some(r1 + whole, tail) * y;
        c += load_some(r2 + whole, tail) * y;
        d += load_some(r3 + whole, tail) * y;
    }
    return add_lanes(a, b, c, d);
}

static inline double one_dot(const double *row, size_t width, const double *point) {
    const size_t whole = width & ~(size_t)3, tail = width & 3;
    lanes a = {0.0};
    for (size_t k = 0; k < whole; k += 4)
        a += load(row + k) * load(point + k);
    if (tail > 0)
        a += load_some(row + whole, tail) * load_some(point + whole, tail);
    return (a[0] + a[1]) + (a[2] + a[3]);
}

/* The best rows found so far, by falling value; rows are offered from the highest slot down. */
typedef struct {
    int32_t number, found;
    int32_t *slots;
    double *values;
    double above, bar; /* a row must exceed `above`, and reach `bar` to be among them */
} best_rows;

static void __attribute__((noinline)) consider(best_rows *best, const pool_view *pool, const uint8_t *present,
                                               int32_t slot, double value) {
    if (!(value > best->above && value >= best->bar) || present[slot] || (pool->active != NULL && !pool->active[slot]))
        return;
    int32_t at = best->found < best->number ? best->found++ : best->number - 1;
    for (; at > 0 && best->values[at - 1] <= value; at--) {
        best->values[at] = best->values[at - 1];
        best->slots[at] = best->slots[at - 1];
    }
    best->values[at] = value;
    best->slots[at] = slot;
    if (best->found == best->number)
        best->bar = best->values[best->number - 1];
}

static inline __attribute__((always_inline)) void search(best_rows *best, const pool_view *pool, size_t stride,
                                                         size_t width, const double *point, const uint8_t *present,
                                                         bool whole) {
    int32_t i = pool->count;
    while (i % 8 != 0) {
        i--;
        consider(best, pool, present, i, pool->intercept[i] + one_dot(pool->slope + (size_t)i * stride, width, point));
    }
    while (i > 0 && (whole || best->found == 0 || i % POOL_STRETCH != 0)) {
        i -= 8;
        const double *slope = pool->slope + (size_t)i * stride;
        const lanes low = load(pool->intercept + i) + four_dots(slope, stride, width, point);
        const lanes high = load(pool->intercept + i + 4) + four_dots(slope + 4 * stride, stride, width, point);
        const lanes bar = {best->bar, best->bar, best->bar, best->bar};
        const __typeof__(low >= bar) hits = (low >= bar) | (high >= bar);
        if (hits[0] | hits[1] | hits[2] | hits[3])
            for (int32_t k = 7; k >= 0; k--)
                consider(best, pool, present, i + k, k < 4 ? low[k & 3] : high[k & 3]);
    }
}

/* The `number` largest values above `above` among rows that are active and not `present` (ties: lowest slot).
 * `slots` gets them by falling value; `values` is scratch of the same length. Returns how many there are.
 * Unless the `whole` pool is asked for, the search ends with the first stretch of rows, from the newest, that has one. */
WIDEST static int32_t pool_best(const pool_view *pool, const double *point, const uint8_t *present, int32_t number,
                                double above, bool whole, int32_t *slots, double *values) {
    best_rows best = {number, 0, slots, values, above, above};
    if (number > 0 && pool->width == 4 && pool->stride == 4)
        search(&best, pool, 4, 4, point, present, whole); /* constant widths make straight code */
    else if (number > 0)
        search(&best, pool, (size_t)pool->stride, (size_t)pool->width, point, present, whole);
    return best.found;
}

/* values += rows * point, over the components from `first` to `end` alone, in four partial sums as ever */
WIDEST static void pool_add(const pool_view *pool, int32_t first, int32_t end, const double *point, double *values) {
    const size_t stride = (size_t)pool->stride, width = (size_t)(end - first);
    const double *slope = pool->slope + first;
    int32_t i = 0;
    for (; i + 4 <= pool->count; i += 4) {
        const lanes sum = load(values + i) + four_dots(slope + (size_t)i * stride, stride, width, point + first);
        memcpy(values + i, &sum, sizeof sum);
    }
    for (; i < pool->count; i++)
        values[i] += one_dot(slope + (size_t)i * stride, width, point + first);
}

/* out = rows * point, for `n` rows of `width` numbers */
WIDEST static void multiply(const double *rows, int32_t n, int32_t width, const double *point, double *out) {
    int32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const lanes product = four_dots(rows + (size_t)i * (size_t)width, (size_t)width, (size_t)width, point);
        memcpy(out + i, &product, sizeof product);
    }
    for (; i < n; i++)
        out[i] = one_dot(rows + (size_t)i * (size_t)width, (size_t)width, point);
}

static void sort_slots(int32_t *slots, int32_t n) {
    for (int32_t i = 1; i < n; i++) {
        int32_t slot = slots[i], at = i;
        for (; at > 0 && slots[at - 1] > slot; at--)
            slots[at] = slots[at - 1];
        slots[at] = slot;
    }
}

#endif
