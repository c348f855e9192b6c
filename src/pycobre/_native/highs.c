/* HiGHS sessions: blocks of chains of LPs solved in one call, without the interpreter.
 *
 * `highs_library.h` finds the solver, `highs_chain.h` is the algorithm, this file is the border to Python: it takes
 * buffers, checks their sizes, releases the GIL, and hands a failed opening back so that the one retry ladder
 * (pycobre/solver/ladder.py) can try to mend it through the small verbs of `Session`. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

#include "highs_chain.h"

static highs_library library;
static bool library_is_open = false;

/* ---- buffers ---- */

/* A C-contiguous buffer of `count` items of `item` bytes (any number when `count` is negative). */
static bool take(PyObject *object, Py_buffer *view, Py_ssize_t item, Py_ssize_t count, bool writable, const char *name)
{
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

static void Model_dealloc(PyObject *self)
{
    Model *model = (Model *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int v = 0; v < model->taken; v++)
        PyBuffer_Release(&model->views[v]);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *Model_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *arrays;
    lp_model m = {0};
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!iiiidddd", &PyTuple_Type, &arrays, &m.num_col, &m.num_row, &m.offset_from, &m.head,
                          &m.offset, &m.cost_scale, &m.head_factor, &m.pool_factor))
        return NULL;
    if (PyTuple_Size(arrays) != MODEL_ARRAY_COUNT)
        return PyErr_Format(PyExc_ValueError, "model: expected %d arrays, got %zd", MODEL_ARRAY_COUNT, PyTuple_Size(arrays));
    Model *self = PyObject_New(Model, type);
    if (self == NULL)
        return NULL;
    self->taken = 0;
#define TAKE(kind, name)                                                                                       \
    if (!take(PyTuple_GetItem(arrays, self->taken), &self->views[self->taken], sizeof(kind), -1, false, #name)) { \
        Py_DECREF(self);                                                                                       \
        return NULL;                                                                                           \
    }                                                                                                          \
    m.name = self->views[self->taken].buf;                                                                     \
    m.name##_size = (int32_t)(self->views[self->taken].len / (Py_ssize_t)sizeof(kind));                        \
    self->taken++;
    MODEL_ARRAYS(TAKE)
#undef TAKE
    self->model = m;
    return (PyObject *)self;
}

static PyType_Slot Model_slots[] = {
    {Py_tp_doc, "A prepared LP model: the arrays it was made of, kept alive."},
    {Py_tp_new, Model_new},
    {Py_tp_dealloc, Model_dealloc},
    {0, NULL},
};
static PyType_Spec Model_spec = {"pycobre._native.highs.Model", sizeof(Model), 0, Py_TPFLAGS_DEFAULT, Model_slots};
static PyObject *Model_type;

/* ---- Session ---- */

typedef struct {
    PyObject_HEAD
    lp_session session;
    PyObject *model; /* keeps session.model alive */
    int32_t *mended_col, *mended_row;
    bool failed; /* the last block did not end well: what is loaded is not to be trusted */
} Session;

static PyObject *Session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    if (!PyArg_ParseTuple(args, ""))
        return NULL;
    if (!library_is_open) {
        PyErr_SetString(PyExc_RuntimeError, "no HiGHS library is open: call open_library first");
        return NULL;
    }
    Session *self = PyObject_New(Session, type);
    if (self == NULL)
        return NULL;
    memset(&self->session, 0, sizeof self->session);
    self->model = NULL;
    self->mended_col = self->mended_row = NULL;
    self->failed = false;
    self->session.lib = &library;
    self->session.highs = library.create();
    if (self->session.highs == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void Session_dealloc(PyObject *object)
{
    Session *self = (Session *)object;
    PyTypeObject *type = Py_TYPE(object);
    session_free(&self->session);
    FREE(self->mended_col), FREE(self->mended_row);
    Py_XDECREF(self->model);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *Session_set_option(PyObject *object, PyObject *args)
{
    void *highs = ((Session *)object)->session.highs;
    const char *name;
    PyObject *value;
    highs_int status = 0;
    if (!PyArg_ParseTuple(args, "sO", &name, &value))
        return NULL;
    if (PyBool_Check(value)) {
        status = library.setBoolOptionValue(highs, name, value == Py_True);
    } else if (PyLong_Check(value)) {
        status = library.setIntOptionValue(highs, name, (highs_int)PyLong_AsLong(value));
    } else if (PyFloat_Check(value)) {
        status = library.setDoubleOptionValue(highs, name, PyFloat_AsDouble(value));
    } else {
        PyObject *bytes = PyUnicode_AsUTF8String(value);
        if (bytes == NULL)
            return NULL;
        status = library.setStringOptionValue(highs, name, PyBytes_AsString(bytes));
        Py_DECREF(bytes);
    }
    return PyErr_Occurred() ? NULL : PyBool_FromLong(status == 0);
}

static PyObject *Session_clear(PyObject *object, PyObject *args)
{
    (void)args;
    library.clearSolver(((Session *)object)->session.highs);
    Py_RETURN_NONE;
}

static PyObject *Session_run(PyObject *object, PyObject *args)
{
    void *highs = ((Session *)object)->session.highs;
    (void)args;
    Py_BEGIN_ALLOW_THREADS
    library.run(highs);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(library.getModelStatus(highs));
}

static PyObject *Session_keep_basis(PyObject *object, PyObject *args)
{
    Session *self = (Session *)object;
    lp_session *s = &self->session;
    highs_int valid = 0;
    (void)args;
    library.getIntInfoValue(s->highs, "basis_validity", &valid);
    if (s->model == NULL || !valid)
        Py_RETURN_FALSE;
    if (!RESIZE(self->mended_col, s->model->num_col) || !RESIZE(self->mended_row, s->model->num_row + s->num_present))
        return PyErr_NoMemory();
    library.getBasis(s->highs, self->mended_col, self->mended_row);
    Py_RETURN_TRUE;
}

static PyObject *Session_put_basis(PyObject *object, PyObject *args)
{
    Session *self = (Session *)object;
    (void)args;
    if (self->mended_col != NULL)
        library.setBasis(self->session.highs, self->mended_col, self->mended_row);
    Py_RETURN_NONE;
}

static PyObject *Session_present(PyObject *object, PyObject *args)
{
    const lp_session *s = &((Session *)object)->session;
    (void)args;
    return PyBytes_FromStringAndSize((const char *)s->present, (Py_ssize_t)s->num_present * (Py_ssize_t)sizeof(int32_t));
}

static PyObject *Session_kept_slots(PyObject *object, PyObject *args)
{
    const lp_session *s = &((Session *)object)->session;
    (void)args;
    return PyBytes_FromStringAndSize((const char *)s->kept_slots, (Py_ssize_t)s->kept * (Py_ssize_t)sizeof(int32_t));
}

/* ---- Session.solve ---- */

typedef enum { BLOCK_DONE, BLOCK_FAILED, BLOCK_NO_MEMORY, BLOCK_INTERRUPTED } block_end;

static bool a_while_since(struct timespec *last)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((double)(now.tv_sec - last->tv_sec) + 1e-9 * (double)(now.tv_nsec - last->tv_nsec) < 0.05)
        return false;
    *last = now;
    return true;
}

/* Chains `begin` to `end`; when resumed, the first goes on where the ladder has mended its run. No GIL here, except to
 * let Ctrl-C through now and then. */
static block_end run_block(lp_session *s, const lp_model *model, const lp_block *b, int32_t begin, int32_t end,
                           bool resumed)
{
    PyThreadState *thread = PyEval_SaveThread();
    block_end how = BLOCK_DONE;
    struct timespec last;
    clock_gettime(CLOCK_MONOTONIC, &last);
    s->holds_pool = false; /* the pool may have changed since the last call */
    for (int32_t i = begin; i < end && how == BLOCK_DONE; i++) {
        int32_t j = resumed ? s->opening : 0;
        if (!resumed) {
            if ((s->model != model && !session_open(s, model)) || !chain_begin(s, b, i)) {
                how = BLOCK_NO_MEMORY;
                break;
            }
        }
        for (; j < b->openings && how == BLOCK_DONE; j++, resumed = false) {
            const opening_end opening = solve_opening(s, b, j, resumed);
            if (opening != OPENING_SOLVED)
                how = opening == OPENING_FAILED ? BLOCK_FAILED : BLOCK_NO_MEMORY;
        }
        if (how == BLOCK_DONE && a_while_since(&last)) {
            PyEval_RestoreThread(thread);
            how = PyErr_CheckSignals() < 0 ? BLOCK_INTERRUPTED : BLOCK_DONE;
            thread = PyEval_SaveThread();
        }
    }
    PyEval_RestoreThread(thread);
    return how;
}

/* The arrays of a block in the order of the tuple that Python passes. A(type, name, count, access) */
#define BLOCK_ARRAYS(A)                                                                                       \
    A(double, x, chains * m->inputs_size, READ)                                                               \
    A(double, values, (b.values_per_chain ? chains : 1) * b.openings * b.plan, READ)                          \
    A(double, intercept, -1, READ)                                                                            \
    A(double, slope, -1, READ)                                                                                \
    A(uint8_t, active, -1, READ)                                                                              \
    A(double, seed, chains * m->outputs_size, READ)                                                           \
    A(uint8_t, start_known, b.starts, READ)                                                                   \
    A(int8_t, start_col, (Py_ssize_t)b.starts * m->num_col, READ)                                             \
    A(int8_t, start_row, (Py_ssize_t)b.starts * m->num_row, READ)                                             \
    A(int32_t, start_pool, b.starts + 1, READ)                                                                \
    A(int32_t, start_slots, -1, READ)                                                                         \
    A(double, objective, solves, WRITE)                                                                       \
    A(double, gradient, solves * m->inputs_size, WRITE)                                                       \
    A(double, output, solves * m->outputs_size, WRITE)                                                        \
    A(double, head, solves, WRITE)                                                                            \
    A(int32_t, iterations, solves, WRITE)                                                                     \
    A(int32_t, rounds, solves, WRITE)                                                                         \
    A(int32_t, retries, solves, WRITE)                                                                        \
    A(uint8_t, by_highs, solves, WRITE)                                                                       \
    A(double, primal, solves * m->num_col, WRITE)                                                             \
    A(double, col_dual, solves * m->num_col, WRITE)                                                           \
    A(double, row_dual, solves * m->num_row, WRITE)                                                           \
    A(int8_t, basis_col, chains * m->num_col, WRITE)                                                          \
    A(int8_t, basis_row, chains * m->num_row, WRITE)                                                          \
    A(int32_t, basis_count, chains, WRITE)

#define COUNT(type, name, count, access) +1
enum { BLOCK_ARRAY_COUNT = 0 BLOCK_ARRAYS(COUNT), READ = 0, WRITE = 1 };
#undef COUNT

static bool pool_fits(pool_view *pool, const Py_buffer *intercept, const Py_buffer *slope, const Py_buffer *active)
{
    const Py_ssize_t count = pool->count, f64 = (Py_ssize_t)sizeof(double);
    return count >= 0 && intercept->len >= count * f64 && slope->len >= count * pool->width * f64 &&
           (active->buf == NULL || active->len >= count);
}

static PyObject *finish(lp_session *s, block_end how)
{
    switch (how) {
    case BLOCK_DONE:
        Py_RETURN_NONE;
    case BLOCK_FAILED:
        return Py_BuildValue("iii", s->chain, s->opening, library.getModelStatus(s->highs));
    case BLOCK_INTERRUPTED:
        return NULL;
    default:
        return PyErr_NoMemory();
    }
}

static PyObject *Session_solve(PyObject *object, PyObject *args)
{
    Session *self = (Session *)object;
    lp_session *s = &self->session;
    PyObject *model_object, *arrays, *result = NULL;
    lp_block b = {0};
    pool_view pool = {0};
    int begin, end, values_per_chain, lazy, retries;
    if (!PyArg_ParseTuple(args, "O!O!iiiiiippdddiiiiiii", Model_type, &model_object, &PyTuple_Type, &arrays, &b.chains,
                          &b.openings, &b.plan, &b.starts, &pool.count, &pool.width, &values_per_chain, &lazy,
                          &b.pool_tolerance, &b.primal_tolerance, &b.dual_tolerance, &b.rows_per_round, &b.seed_rows,
                          &b.tableau_entries, &b.iteration_limit, &begin, &end, &retries))
        return NULL;
    if (PyTuple_Size(arrays) != BLOCK_ARRAY_COUNT || begin < 0 || end > b.chains)
        return PyErr_Format(PyExc_ValueError, "block: expected %d arrays and a range of chains", BLOCK_ARRAY_COUNT);
    const lp_model *m = &((Model *)model_object)->model;
    const Py_ssize_t chains = b.chains, solves = chains * b.openings;
    b.values_per_chain = values_per_chain;
    b.lazy = lazy;
    Py_buffer views[BLOCK_ARRAY_COUNT];
    memset(views, 0, sizeof views);
    int at = 0;
    struct {
#define MEMBER(type, name, count, access) type *name;
        BLOCK_ARRAYS(MEMBER)
#undef MEMBER
    } array = {0};
    struct {
#define MEMBER(type, name, count, access) Py_buffer *name;
        BLOCK_ARRAYS(MEMBER)
#undef MEMBER
    } view;
#define TAKE(type, name, count, access)                                                                       \
    view.name = &views[at];                                                                                   \
    if (PyTuple_GetItem(arrays, at) != Py_None) {                                                             \
        if (!take(PyTuple_GetItem(arrays, at), view.name, sizeof(type), count, access, #name))                \
            goto done;                                                                                        \
        array.name = view.name->buf;                                                                          \
    }                                                                                                         \
    at++;
    BLOCK_ARRAYS(TAKE)
#undef TAKE
    b.x = array.x, b.values = array.values, b.seed = array.seed;
    b.start_known = array.start_known, b.start_col = array.start_col, b.start_row = array.start_row;
    b.start_pool = array.start_pool, b.start_slots = array.start_slots;
    b.objective = array.objective, b.gradient = array.gradient, b.output = array.output, b.head = array.head;
    b.iterations = array.iterations, b.rounds = array.rounds, b.retries = array.retries, b.by_highs = array.by_highs;
    b.primal = array.primal, b.col_dual = array.col_dual, b.row_dual = array.row_dual;
    b.basis_col = array.basis_col, b.basis_row = array.basis_row, b.basis_count = array.basis_count;
    if (array.intercept != NULL) {
        pool.intercept = array.intercept, pool.slope = array.slope, pool.active = array.active;
        if (pool.width != m->outputs_size || !pool_fits(&pool, view.intercept, view.slope, view.active)) {
            PyErr_SetString(PyExc_ValueError, "pool: the arrays are smaller than its count");
            goto done;
        }
        b.pool = &pool;
        if (!reserve_slots(s, pool.count)) {
            PyErr_NoMemory();
            goto done;
        }
    }
    if (retries < 0) {
        s->kept = 0;
        s->dirty |= self->failed;
        if (self->model != model_object) { /* the old model stays alive until its LP is replaced */
            PyObject *old = self->model;
            s->model = NULL;
            self->model = Py_NewRef(model_object);
            Py_XDECREF(old);
        }
    } else {
        s->run_retries += retries;
        count_iterations(s);
    }
    const block_end how = run_block(s, m, &b, begin, end, retries >= 0);
    self->failed = how != BLOCK_DONE;
    result = finish(s, how);
done:
    for (int v = 0; v < BLOCK_ARRAY_COUNT; v++)
        if (views[v].obj != NULL)
            PyBuffer_Release(&views[v]);
    return result;
}

static PyMethodDef Session_methods[] = {
    {"set_option", Session_set_option, METH_VARARGS, "Set one HiGHS option; False when HiGHS refuses it."},
    {"solve", Session_solve, METH_VARARGS, "Solve chains of a block; None, or (chain, opening, status) of a failure."},
    {"clear", Session_clear, METH_NOARGS, "Forget everything but the LP."},
    {"run", Session_run, METH_NOARGS, "Run HiGHS on the LP as it is; its model status."},
    {"keep_basis", Session_keep_basis, METH_NOARGS, "Remember the current basis; False where there is none."},
    {"put_basis", Session_put_basis, METH_NOARGS, "Start the next run from the remembered basis."},
    {"present", Session_present, METH_NOARGS, "Pool slots in the LP, as int32 bytes."},
    {"kept_slots", Session_kept_slots, METH_NOARGS, "Binding slots of the bases of the last block, as int32 bytes."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot Session_slots[] = {
    {Py_tp_doc, "One HiGHS object and the LP it holds."},
    {Py_tp_new, Session_new},
    {Py_tp_dealloc, Session_dealloc},
    {Py_tp_methods, Session_methods},
    {0, NULL},
};
static PyType_Spec Session_spec = {"pycobre._native.highs.Session", sizeof(Session), 0, Py_TPFLAGS_DEFAULT,
                                   Session_slots};

/* ---- module ---- */

static PyObject *open_library(PyObject *module, PyObject *args)
{
    const char *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &path))
        return NULL;
    if (!library_is_open) {
        const char *missing = highs_library_open(&library, path);
        if (missing != NULL)
            return PyErr_Format(PyExc_OSError, "%s", missing);
        if (library.getSizeofHighsInt(NULL) != (highs_int)sizeof(highs_int)) {
            PyErr_SetString(PyExc_OSError, "the HiGHS library uses 64-bit indices, which this module does not");
            return NULL;
        }
        library_is_open = true;
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"open_library", open_library, METH_VARARGS, "Find the C API of HiGHS in the shared library at this path, once."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "highs", "Blocks of chains of LPs, solved by HiGHS without the interpreter.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_highs(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    Model_type = PyType_FromSpec(&Model_spec);
    PyObject *session_type = PyType_FromSpec(&Session_spec);
    if (Model_type == NULL || session_type == NULL || PyModule_AddObjectRef(module, "Model", Model_type) < 0 ||
        PyModule_AddObjectRef(module, "Session", session_type) < 0) {
        Py_XDECREF(session_type);
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(session_type);
    return module;
}
