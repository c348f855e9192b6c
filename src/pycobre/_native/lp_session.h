/* A session: one HiGHS object, one tableau, the block at work, and scratch memory for them. */
#ifndef PYCOBRE_LP_SESSION_H
#define PYCOBRE_LP_SESSION_H

#include <stdatomic.h>

#include "highs_library.h"
#include "lp_model.h"
#include "lp_pool.h"
#include "lp_kernel_simplex.h"
#include "lp_simplex.h"

/* The arguments of one block. Chains are rows of x; pointers to absent things are NULL. */
typedef struct {
    int32_t chains, openings, plan;
    const double *x;
    const double *values;
    bool values_per_chain;
    const pool_view *pool;
    const double *seed;
    bool lazy;
    int32_t starts; /* 0, 1 (shared) or one per chain */
    const uint8_t *start_known;
    const int8_t *start_col, *start_row;
    const int32_t *start_pool, *start_slots;
    double pool_tolerance, primal_tolerance, dual_tolerance;
    int32_t rows_per_round, seed_rows, tableau_entries, kernel_rows, iteration_limit;
    double *objective, *gradient, *output, *head;
    int32_t *iterations, *rounds, *retries;
    uint8_t *by_highs;
    int32_t *rejected;
    uint8_t *certified;
    double *primal, *col_dual, *row_dual;
    int8_t *basis_col, *basis_row;
    int32_t *basis_count;   /* [chains]: pool rows in each basis; the slots go to `kept_slots` of the session */
    int32_t *basis_owner;   /* [chains]: the number of that session */
    _Atomic int64_t *dealt; /* chains begun by all who share the block, in memory of theirs; NULL: it is not shared */
    uint8_t *taken;         /* [chains]: 1 where a chain was solved here */
} lp_block;

/* What the certificate of an answer is computed in (lp_certificate.h). */
typedef struct {
    int32_t cols, rows; /* room */
    double *cost, *lower, *upper, *reduced, *reduced_size;
    double *row_lower, *row_upper, *activity, *activity_size;
} certificate_scratch;

typedef enum { BY_HIGHS, BY_TABLEAU, BY_KERNEL } chain_engine;

/* One HiGHS object, the model it holds, and scratch memory. */
typedef struct {
    const highs_library *lib;
    void *highs;
    const lp_model *model;
    int32_t number;       /* among the sessions that share a block */
    bool dirty;           /* HiGHS does not hold the model's LP: load it before it is used */
    bool spoiled;         /* this chain moved matrix entries: HiGHS's LP is dirty after it */
    const double *vector; /* the opening's patch vector */
    /* the chain at work */
    int32_t num_present;
    int32_t *present;                    /* pool slots in the LP, in the order of its rows */
    uint8_t *is_present;                 /* by slot */
    double *of_chain, *of_opening;       /* by slot: what a pool row is with the states that those know, */
    double *of_round;                    /* and scratch */
    bool chain_known, opening_known;     /* they are computed */
    int32_t slot_capacity, row_capacity; /* room in `is_present` and in row-sized arrays */
    int32_t chain, opening;
    int32_t highs_rows; /* pool rows in HiGHS's LP */
    bool holds_pool;    /* they are all the rows of this block's pool, as every chain of it wants them */
    tableau tab;
    kernel ker;
    chain_engine engine; /* what solves this chain */
    bool ready;          /* it has a basis; HiGHS solves what it leaves */
    int32_t run_iterations, run_rounds, run_retries;
    bool run_by_highs;
    int32_t run_rejected; /* answers of HiGHS that failed the certificate */
    bool run_certified;
    int32_t reject_next; /* answers to reject whatever they are: for tests */
    certificate_scratch certificate;
    /* slots of the bases kept so far, chain after chain */
    int32_t *kept_slots;
    int32_t kept, kept_capacity;
    /* scratch */
    double *col_value, *col_dual, *row_dual;
    int32_t *col_status, *row_status;
    double *lower, *upper, *col_low, *col_up, *costs, *state, *out_lower, *out_upper, *shortfall;
    int32_t *found;
    double *found_values;
    int32_t *add_columns, *add_starts;
    double *add_coefficients, *add_lower, *add_upper;
    int32_t found_capacity;
} lp_session;

static int32_t roomier(int32_t needed) {
    return needed < 64 ? 64 : needed + needed / 2;
}

static void session_free_scratch(lp_session *s) {
    FREE(s->col_value), FREE(s->col_dual), FREE(s->row_dual), FREE(s->col_status), FREE(s->row_status);
    FREE(s->lower), FREE(s->upper), FREE(s->col_low), FREE(s->col_up), FREE(s->costs), FREE(s->state);
    FREE(s->out_lower), FREE(s->out_upper), FREE(s->shortfall), FREE(s->present);
    FREE(s->found), FREE(s->found_values), FREE(s->add_columns), FREE(s->add_starts);
    FREE(s->add_coefficients), FREE(s->add_lower), FREE(s->add_upper);
    certificate_scratch *c = &s->certificate;
    FREE(c->cost), FREE(c->lower), FREE(c->upper), FREE(c->reduced), FREE(c->reduced_size);
    FREE(c->row_lower), FREE(c->row_upper), FREE(c->activity), FREE(c->activity_size);
    c->cols = c->rows = 0;
    s->row_capacity = s->found_capacity = 0;
}

static void session_free(lp_session *s) {
    session_free_scratch(s);
    tableau_free(&s->tab);
    kernel_free(&s->ker);
    FREE(s->is_present), FREE(s->kept_slots), FREE(s->of_chain), FREE(s->of_opening), FREE(s->of_round);
    if (s->highs != NULL)
        s->lib->destroy(s->highs);
    s->highs = NULL;
}

/* Row-sized scratch for the base rows and `extra` pool rows. */
static bool reserve_rows(lp_session *s, int32_t extra) {
    const int32_t needed = s->model->num_row + extra;
    if (s->row_dual != NULL && needed <= s->row_capacity)
        return true;
    const int32_t room = roomier(needed);
    if (!(RESIZE(s->row_dual, room) && RESIZE(s->row_status, room) && RESIZE(s->present, room)))
        return false;
    s->row_capacity = room;
    return true;
}

/* Marks for `count` pool slots. */
static bool reserve_slots(lp_session *s, int32_t count) {
    if (s->is_present != NULL && count <= s->slot_capacity)
        return true;
    const int32_t room = roomier(count);
    if (!(RESIZE(s->is_present, room) && RESIZE(s->of_chain, room) && RESIZE(s->of_opening, room) &&
          RESIZE(s->of_round, room)))
        return false;
    memset(s->is_present + s->slot_capacity, 0, (size_t)(room - s->slot_capacity));
    s->slot_capacity = room;
    return true;
}

/* Scratch for `n` pool rows that are looked for or added at once. */
static bool reserve_found(lp_session *s, int32_t n) {
    if (s->found != NULL && n <= s->found_capacity)
        return true;
    const int32_t room = roomier(n), entries = room * (s->model->outputs_size + 1);
    if (!(RESIZE(s->found, room) && RESIZE(s->found_values, room) && RESIZE(s->add_starts, room) &&
          RESIZE(s->add_lower, room) && RESIZE(s->add_upper, room) && RESIZE(s->add_columns, entries) &&
          RESIZE(s->add_coefficients, entries)))
        return false;
    s->found_capacity = room;
    return true;
}

/* Scratch for another model; HiGHS gets its LP when it is needed. */
static bool session_open(lp_session *s, const lp_model *m) {
    for (int32_t r = 0; r < s->num_present; r++)
        s->is_present[s->present[r]] = 0;
    s->num_present = 0;
    session_free_scratch(s);
    tableau_free(&s->tab);
    kernel_free(&s->ker);
    s->model = m;
    s->dirty = true;
#define ALLOCATE(name, count) ((s->name = calloc((size_t)(count) + 1, sizeof *s->name)) != NULL)
    return ALLOCATE(col_value, m->num_col) && ALLOCATE(col_dual, m->num_col) && ALLOCATE(col_status, m->num_col) &&
           ALLOCATE(lower, m->row_set_size) && ALLOCATE(upper, m->row_set_size) &&
           ALLOCATE(col_low, m->col_set_size + m->inputs_size) && ALLOCATE(col_up, m->col_set_size) &&
           ALLOCATE(costs, m->cost_set_size) && ALLOCATE(state, m->outputs_size) &&
           ALLOCATE(out_lower, m->outputs_size) && ALLOCATE(out_upper, m->outputs_size) &&
           ALLOCATE(shortfall, m->floor_limit_size) && reserve_rows(s, 0);
#undef ALLOCATE
}

#endif
