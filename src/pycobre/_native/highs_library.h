/* The C API of HiGHS, found at run time in the shared library that the highspy wheel ships.
 *
 * Nothing is linked: the extension builds without HiGHS, and the library in use is the very one that highspy
 * has loaded, so both paths run the same machine code. */
#ifndef PYCOBRE_HIGHS_LIBRARY_H
#define PYCOBRE_HIGHS_LIBRARY_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t highs_int;

/* F(return type, name, arguments) */
/* clang-format off */
#define HIGHS_FUNCTIONS(F)                                                                                     \
    F(void *, create, (void))                                                                                  \
    F(void, destroy, (void *))                                                                                 \
    F(highs_int, getSizeofHighsInt, (const void *))                                                            \
    F(highs_int, setBoolOptionValue, (void *, const char *, highs_int))                                        \
    F(highs_int, setIntOptionValue, (void *, const char *, highs_int))                                         \
    F(highs_int, setDoubleOptionValue, (void *, const char *, double))                                         \
    F(highs_int, setStringOptionValue, (void *, const char *, const char *))                                   \
    F(highs_int, passLp,                                                                                       \
      (void *, highs_int, highs_int, highs_int, highs_int, highs_int, double, const double *, const double *, \
       const double *, const double *, const double *, const highs_int *, const highs_int *, const double *)) \
    F(highs_int, addRows,                                                                                      \
      (void *, highs_int, const double *, const double *, highs_int, const highs_int *, const highs_int *,    \
       const double *))                                                                                        \
    F(highs_int, deleteRowsByRange, (void *, highs_int, highs_int))                                            \
    F(highs_int, changeRowsBoundsBySet,                                                                        \
      (void *, highs_int, const highs_int *, const double *, const double *))                                 \
    F(highs_int, changeColsBoundsBySet,                                                                        \
      (void *, highs_int, const highs_int *, const double *, const double *))                                 \
    F(highs_int, changeColsCostBySet, (void *, highs_int, const highs_int *, const double *))                  \
    F(highs_int, changeCoeff, (void *, highs_int, highs_int, double))                                          \
    F(highs_int, changeObjectiveOffset, (void *, double))                                                      \
    F(highs_int, clearSolver, (void *))                                                                        \
    F(highs_int, setBasis, (void *, const highs_int *, const highs_int *))                                     \
    F(highs_int, getBasis, (const void *, highs_int *, highs_int *))                                           \
    F(highs_int, run, (void *))                                                                                \
    F(highs_int, getModelStatus, (const void *))                                                               \
    F(highs_int, getIntInfoValue, (const void *, const char *, highs_int *))                                   \
    F(double, getObjectiveValue, (const void *))                                                               \
    F(highs_int, getSolution, (const void *, double *, double *, double *, double *))
/* clang-format on */

#define DECLARE(type, name, arguments) type(*name) arguments;
typedef struct {
    HIGHS_FUNCTIONS(DECLARE)
} highs_library;
#undef DECLARE

/* Fill `library` from the shared object at `path`; returns what is missing, or NULL when all is there. */
static const char *highs_library_open(highs_library *library, const char *path) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return dlerror();
#define FIND(type, name, arguments)                           \
    *(void **)&library->name = dlsym(object, "Highs_" #name); \
    if (library->name == NULL)                                \
        return "the library does not export Highs_" #name;
    HIGHS_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

#endif
