/* Rank-order reductions: out[i] = op(out[i], part[i]), with the bits NumPy's add, minimum and maximum give.
 *
 * Integers wrap around. Minimum and maximum return the first NaN, whole, and of two zeros the second. Types not
 * here (half, long double) are gathered and folded in Python. Elements may be unaligned: arrays are.
 */
#ifndef PYCOBRE_SHM_FOLD_H
#define PYCOBRE_SHM_FOLD_H

#include <stddef.h>
#include <stdint.h>

typedef void (*shm_fold)(void *out, const void *part, size_t count);

enum { SHM_SUM = 1, SHM_MIN = 2, SHM_MAX = 3 };

#define SHM_FOLD(name, type, body)                                           \
    static void shm_fold_##name(void *out, const void *part, size_t count) { \
        typedef type __attribute__((aligned(1), may_alias)) element;         \
        element *to = out;                                                   \
        const element *from = part;                                          \
        for (size_t i = 0; i < count; i++) {                                 \
            type a = to[i], b = from[i];                                     \
            to[i] = (type)(body);                                            \
        }                                                                    \
    }

/* Sums of signed integers run on the unsigned type: the same bits, and overflow is defined. */
#define SHM_FOLD_INTEGERS(bits)                                   \
    SHM_FOLD(sum_##bits, uint##bits##_t, (uint##bits##_t)(a + b)) \
    SHM_FOLD(min_i##bits, int##bits##_t, a < b ? a : b)           \
    SHM_FOLD(max_i##bits, int##bits##_t, a > b ? a : b)           \
    SHM_FOLD(min_u##bits, uint##bits##_t, a < b ? a : b)          \
    SHM_FOLD(max_u##bits, uint##bits##_t, a > b ? a : b)

#define SHM_FOLD_FLOATS(name, type)                        \
    SHM_FOLD(sum_##name, type, a + b)                      \
    SHM_FOLD(min_##name, type, a != a ? a : a < b ? a : b) \
    SHM_FOLD(max_##name, type, a != a ? a : a > b ? a : b)

SHM_FOLD_INTEGERS(8)
SHM_FOLD_INTEGERS(16)
SHM_FOLD_INTEGERS(32)
SHM_FOLD_INTEGERS(64)
SHM_FOLD_FLOATS(f32, float)
SHM_FOLD_FLOATS(f64, double)

/* The kernel for a type class ('i', 'u', 'f') of `itemsize` bytes, or NULL. */
static inline shm_fold shm_fold_for(char kind, size_t itemsize, int reduce) {
#define SHM_PICK(sum, min, max) (reduce == SHM_SUM ? (sum) : reduce == SHM_MIN ? (min) : (max))
#define SHM_PICK_INTEGER(bits)                                                                         \
    if ((kind == 'i' || kind == 'u') && itemsize == (bits) / 8)                                        \
        return kind == 'i' ? SHM_PICK(shm_fold_sum_##bits, shm_fold_min_i##bits, shm_fold_max_i##bits) \
                           : SHM_PICK(shm_fold_sum_##bits, shm_fold_min_u##bits, shm_fold_max_u##bits);
    SHM_PICK_INTEGER(8)
    SHM_PICK_INTEGER(16)
    SHM_PICK_INTEGER(32)
    SHM_PICK_INTEGER(64)
#undef SHM_PICK_INTEGER
    if (kind == 'f' && itemsize == 4)
        return SHM_PICK(shm_fold_sum_f32, shm_fold_min_f32, shm_fold_max_f32);
    if (kind == 'f' && itemsize == 8)
        return SHM_PICK(shm_fold_sum_f64, shm_fold_min_f64, shm_fold_max_f64);
#undef SHM_PICK
    return NULL;
}

#endif
