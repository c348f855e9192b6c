/* Models and sessions as Python objects, and blocks solved without the GIL, by one session or by a team. */
#ifndef PYCOBRE_LP_SOLVE_H
#define PYCOBRE_LP_SOLVE_H

#include "lp_check.h"
#include "lp_team.h"

static highs_library library;
static bool library_is_open = false;

/* ---- buffers ---- */

/* A C-contiguous buffer of `count` items of `item` bytes (any number when `count` is negative). */
static bool take(PyObject *object, Py_buffer *view, Py_ssize_t item, Py_ssize_t count, bool writable,
                 const char *name) {
    if (PyObject_GetBuffer(object, view, writable ? PyBUF_CONTIG | PyBUF_WRITABLE : PyBUF_CONTIG_RO) < 0)
        return false;
    if (view->len % item == 0 && (count < 0 || view->len == count * item))
        return true;
    PyErr_Format(PyExc_ValueError, "%s: expected %zd items of %zd bytes, got %zd bytes", name, count, item, view->len);
    PyBuffer_Release(view);
    return false;
}

/* ---- Model ---- */

#define COUNT(type, name) +1
enum { MODEL_ARRAY_COUNT = 0 MODEL_ARRAYS(COUNT) };
#undef COUNT

typedef struct {
    PyObject_HEAD
    lp_model model;
    Py_buffer views[MODEL_ARRAY_COUNT];
    int taken;
} Model;

static void Model_dealloc(PyObject *self) {
    Model *model = (Model *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int v = 0; v < model->taken; v++)
        PyBuffer_Release(&model->views[v]);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *Model_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *arrays;
    lp_model m = {0};
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!iiiidddd", &PyTuple_Type, &arrays, &m.num_col, &m.num_row, &m.offset_from, &m.head,
                          &m.offset, &m.cost_scale, &m.head_factor, &m.pool_factor))
        return NULL;
    if (PyTuple_Size(arrays) != MODEL_ARRAY_COUNT)
        return PyErr_Format(PyExc_ValueError, "model: expected %d arrays, got %zd", MODEL_ARRAY_COUNT,
                            PyTuple_Size(arrays));
    Model *self = PyObject_New(Model, type);
    if (self == NULL)
        return NULL;
    self->taken = 0;
#define TAKE(kind, name)                                                                                          \
    if (!take(PyTuple_GetItem(arrays, self->taken), &self->views[self->taken], sizeof(kind), -1, false, #name)) { \
        Py_DECREF(self);                                                                                          \
        return NULL;                                                                                              \
    }                                                                                                             \
    m.name = self->views[self->taken].buf;                                                                        \
    m.name##_size = (int32_t)(self->views[self->taken].len / (Py_ssize_t)sizeof(kind));                           \
    self->taken++;
    MODEL_ARRAYS(TAKE)
#undef TAKE
    const char *fault = model_fault(&m);
    for (int v = 0; v < self->taken; v++)
        if (self->views[v].len > (Py_ssize_t)COUNT_LARGEST * (Py_ssize_t)sizeof(double))
            fault = "arrays of a size that can be counted";
    if (fault != NULL) {
        Py_DECREF(self);
        return PyErr_Format(PyExc_ValueError, "model: expected sizes and indices that fit, got others in %s", fault);
    }
    self->model = m;
    return (PyObject *)self;
}

static PyType_Slot Model_slots[] = {
    {Py_tp_doc, "A prepared LP model: the arrays it was made of, kept alive."},
    {Py_tp_new, Model_new},
    {Py_tp_dealloc, Model_dealloc},
    {0, NULL},
};
static PyType_Spec Model_spec = {"pycobre._native.lp.Model", sizeof(Model), 0, Py_TPFLAGS_DEFAULT, Model_slots};
static PyObject *Model_type;

/* ---- Session ---- */

typedef struct {
    PyObject_HEAD
    lp_session session;
    PyObject *model; /* keeps session.model alive */
    int32_t *recovered_col, *recovered_row;
    int32_t recovered_cols, recovered_rows; /* how many they hold */
    bool failed;                            /* the last block did not end well: what is loaded is not to be trusted */
    lp_team *team;                          /* of this session and of its helpers, where it leads one */
    PyObject *helpers;
} Session;

/* ---- blocks ---- */

typedef enum { BLOCK_DONE, BLOCK_FAILED, BLOCK_NO_MEMORY, BLOCK_INTERRUPTED } block_end;

/* Now and then: take the GIL to let Ctrl-C through. */
static bool interrupted(PyThreadState **thread, int64_t *last) {
    const int64_t now = now_ns();
    if (now - *last < PATIENCE_MS * 1000000)
        return false;
    *last = now;
    PyEval_RestoreThread(*thread);
    const bool found = PyErr_CheckSignals() < 0;
    *thread = PyEval_SaveThread();
    return found;
}

/* Chains `begin` to `end`; when resumed, the first goes on where the recovery has solved its run. No GIL here. */
static block_end run_block(lp_session *s, const lp_model *model, const lp_block *b, int32_t begin, int32_t end,
                           bool resumed) {
    PyThreadState *thread = PyEval_SaveThread();
    block_end how = BLOCK_DONE;
    int64_t last = now_ns();
    for (int32_t i = resumed ? begin : chain_of_turn(b, begin); i < end; i = chain_of_turn(b, i + 1), resumed = false) {
        const chain_end chain = run_chain(s, model, b, i, resumed);
        if (chain != CHAIN_DONE)
            how = chain == CHAIN_FAILED ? BLOCK_FAILED : BLOCK_NO_MEMORY;
        else if (interrupted(&thread, &last))
            how = BLOCK_INTERRUPTED;
        if (how != BLOCK_DONE)
            break; /* before another chain is taken from those who share the block */
    }
    PyEval_RestoreThread(thread);
    return how;
}

/* The same by a team; `end` becomes the first turn that nobody took. */
static block_end run_together(lp_team *team, const lp_model *model, const lp_block *b, int32_t begin, int32_t *end) {
    PyThreadState *thread = PyEval_SaveThread();
    block_end how = BLOCK_DONE;
    int64_t last = now_ns();
    team_member *own = &team->member[0];
    team_offer(team, model, b, begin, *end);
    const uint32_t number = (uint32_t)(atomic_load(&team->word) >> 32);
    while (how == BLOCK_DONE && solve_next(own, number))
        if (interrupted(&thread, &last))
            how = BLOCK_INTERRUPTED;
    *end = team_close_offer(team);
    while (!team_wait(team, *end - begin))
        if (interrupted(&thread, &last))
            how = BLOCK_INTERRUPTED;
    PyEval_RestoreThread(thread);
    for (int32_t k = 0; k < team->size && how != BLOCK_INTERRUPTED && how != BLOCK_NO_MEMORY; k++)
        if (team->member[k].how != CHAIN_DONE)
            how = team->member[k].how == CHAIN_FAILED ? BLOCK_FAILED : BLOCK_NO_MEMORY;
    return how;
}

static PyObject *failure_of(const lp_session *s) {
    return Py_BuildValue("iii", s->chain, s->opening, library.getModelStatus(s->highs));
}

/* Who failed where: (first chain that nobody began, ((member, (chain, opening, status)), …)). */
static PyObject *failures_of(const lp_team *team, int32_t next) {
    PyObject *failures = PyList_New(0);
    for (int32_t k = 0; failures != NULL && k < team->size; k++) {
        if (team->member[k].how != CHAIN_FAILED)
            continue;
        PyObject *each = Py_BuildValue("iN", k, failure_of(team->member[k].session));
        if (each == NULL || PyList_Append(failures, each) < 0)
            Py_CLEAR(failures);
        Py_XDECREF(each);
    }
    return failures == NULL ? NULL : Py_BuildValue("iN", next, failures);
}

/* Make a session ready for a new block; false, with an exception, when memory is short. */
static bool open_block(Session *self, PyObject *model_object, const pool_view *pool, int32_t number) {
    lp_session *s = &self->session;
    if (pool != NULL && !reserve_slots(s, pool->count)) {
        PyErr_NoMemory();
        return false;
    }
    s->number = number;
    s->holds_pool = false; /* the pool may have changed since the last call */
    s->dirty |= self->failed;
    self->failed = false;
    if (self->model != model_object) { /* the old model stays alive until its LP is replaced */
        PyObject *old = self->model;
        s->model = NULL;
        self->model = Py_NewRef(model_object);
        Py_XDECREF(old);
    }
    return true;
}

static PyObject *solve_by_team(Session *self, PyObject *model_object, const lp_block *b, int32_t begin, int32_t end) {
    lp_team *team = self->team;
    for (int32_t k = 0; k < team->size; k++) {
        PyObject *member = k == 0 ? (PyObject *)self : PyTuple_GetItem(self->helpers, k - 1);
        if (!open_block((Session *)member, model_object, b->pool, k))
            return NULL;
        if (begin == 0)
            ((Session *)member)->session.kept = 0;
    }
    if (b->dealt != NULL)
        end += team->size; /* every member asks once in vain when there is no chain left */
    const int32_t wanted = end;
    const block_end how = run_together(team, &((Model *)model_object)->model, b, begin, &end);
    for (int32_t k = 0; k < team->size; k++) {
        PyObject *member = k == 0 ? (PyObject *)self : PyTuple_GetItem(self->helpers, k - 1);
        ((Session *)member)->failed = how == BLOCK_INTERRUPTED || team->member[k].how != CHAIN_DONE;
    }
    if (how == BLOCK_INTERRUPTED)
        return NULL;
    if (how == BLOCK_NO_MEMORY)
        return PyErr_NoMemory();
    if (how == BLOCK_DONE && (end == wanted || b->dealt != NULL))
        Py_RETURN_NONE;
    return failures_of(team, b->dealt != NULL ? begin : end);
}

static PyObject *solve_alone(Session *self, PyObject *model_object, const lp_block *b, int32_t begin, int32_t end,
                             int retries) {
    lp_session *s = &self->session;
    if (retries < 0) {
        s->kept = 0;
        if (!open_block(self, model_object, b->pool, 0))
            return NULL;
    } else {
        s->run_retries += retries;
        count_iterations(s);
    }
    const block_end how = run_block(s, &((Model *)model_object)->model, b, begin, end, retries >= 0);
    self->failed = how != BLOCK_DONE;
    switch (how) {
    case BLOCK_DONE:
        Py_RETURN_NONE;
    case BLOCK_FAILED:
        return failure_of(s);
    case BLOCK_INTERRUPTED:
        return NULL;
    default:
        return PyErr_NoMemory();
    }
}

#endif
