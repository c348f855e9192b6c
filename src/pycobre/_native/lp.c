/* HiGHS sessions: blocks of chains of LPs solved in one call, without the interpreter.
 *
 * `highs_library.h` finds the solver, `lp_chain.h` is the algorithm, `lp_team.h` shares it among threads; this file
 * and `lp_solve.h` are the border to Python: they take buffers, check their sizes, release the GIL, and hand a failed
 * opening back so that the recovery (pycobre/solver/recovery.py) can try to solve it through the small verbs of
 * `Session`. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "lp_solve.h"

static PyObject *Session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
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
    self->recovered_col = self->recovered_row = NULL;
    self->recovered_cols = self->recovered_rows = 0;
    self->failed = false;
    self->team = NULL;
    self->helpers = NULL;
    self->session.lib = &library;
    self->session.highs = library.create();
    if (self->session.highs == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void Session_dealloc(PyObject *object) {
    Session *self = (Session *)object;
    PyTypeObject *type = Py_TYPE(object);
    team_free(self->team);
    Py_XDECREF(self->helpers);
    session_free(&self->session);
    FREE(self->recovered_col), FREE(self->recovered_row);
    Py_XDECREF(self->model);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *Session_set_option(PyObject *object, PyObject *args) {
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

static PyObject *Session_clear(PyObject *object, PyObject *args) {
    (void)args;
    library.clearSolver(((Session *)object)->session.highs);
    Py_RETURN_NONE;
}

static PyObject *Session_run(PyObject *object, PyObject *args) {
    void *highs = ((Session *)object)->session.highs;
    (void)args;
    Py_BEGIN_ALLOW_THREADS
    library.run(highs);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(library.getModelStatus(highs));
}

static PyObject *Session_keep_basis(PyObject *object, PyObject *args) {
    Session *self = (Session *)object;
    lp_session *s = &self->session;
    highs_int valid = 0;
    (void)args;
    library.getIntInfoValue(s->highs, "basis_validity", &valid);
    if (s->model == NULL || !valid)
        Py_RETURN_FALSE;
    if (!RESIZE(self->recovered_col, s->model->num_col) ||
        !RESIZE(self->recovered_row, s->model->num_row + s->num_present))
        return PyErr_NoMemory();
    library.getBasis(s->highs, self->recovered_col, self->recovered_row);
    self->recovered_cols = s->model->num_col;
    self->recovered_rows = s->model->num_row + s->num_present;
    Py_RETURN_TRUE;
}

static PyObject *Session_put_basis(PyObject *object, PyObject *args) {
    Session *self = (Session *)object;
    (void)args;
    const lp_session *s = &self->session;
    if (self->recovered_col != NULL && s->model != NULL && self->recovered_cols == s->model->num_col &&
        self->recovered_rows == s->model->num_row + s->num_present)
        library.setBasis(self->session.highs, self->recovered_col, self->recovered_row);
    Py_RETURN_NONE;
}

static PyObject *Session_present(PyObject *object, PyObject *args) {
    const lp_session *s = &((Session *)object)->session;
    (void)args;
    return PyBytes_FromStringAndSize((const char *)s->present,
                                     (Py_ssize_t)s->num_present * (Py_ssize_t)sizeof(int32_t));
}

static PyObject *Session_kept_slots(PyObject *object, PyObject *args) {
    const lp_session *s = &((Session *)object)->session;
    (void)args;
    return PyBytes_FromStringAndSize((const char *)s->kept_slots, (Py_ssize_t)s->kept * (Py_ssize_t)sizeof(int32_t));
}

static PyObject *Session_reject_answers(PyObject *object, PyObject *args) {
    if (!PyArg_ParseTuple(args, "i", &((Session *)object)->session.reject_next))
        return NULL;
    Py_RETURN_NONE;
}

/* Lead the sessions of a tuple: `solve_together` shares chains with them. `awake`: there is a core for each. */
static PyObject *Session_lead(PyObject *object, PyObject *args) {
    Session *self = (Session *)object;
    PyObject *helpers;
    lp_session *sessions[64] = {&self->session};
    int awake;
    if (!PyArg_ParseTuple(args, "O!p", &PyTuple_Type, &helpers, &awake))
        return NULL;
    const Py_ssize_t count = PyTuple_Size(helpers);
    if (count > 63 || self->team != NULL)
        return PyErr_Format(PyExc_ValueError, "a team: expected up to 63 helpers, once, got %zd", count);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *helper = PyTuple_GetItem(helpers, k);
        if (Py_TYPE(helper) != Py_TYPE(object))
            return PyErr_Format(PyExc_TypeError, "a team: expected sessions");
        for (Py_ssize_t j = 0; j <= k; j++)
            if (sessions[j] == &((Session *)helper)->session)
                return PyErr_Format(PyExc_ValueError, "a team: expected different sessions, got one twice");
        sessions[k + 1] = &((Session *)helper)->session;
    }
    self->team = team_new(sessions, (int32_t)count + 1, awake);
    if (self->team == NULL)
        return PyErr_NoMemory();
    self->helpers = Py_NewRef(helpers);
    Py_RETURN_NONE;
}

/* ---- Session.solve ---- */

/* The arrays of a block in the order of the tuple that Python passes. A(type, name, count, access) */
/* clang-format off */
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
    A(int32_t, rejected, solves, WRITE)                                                                       \
    A(uint8_t, certified, solves, WRITE)                                                                      \
    A(double, primal, solves * m->num_col, WRITE)                                                             \
    A(double, col_dual, solves * m->num_col, WRITE)                                                           \
    A(double, row_dual, solves * m->num_row, WRITE)                                                           \
    A(int8_t, basis_col, chains * m->num_col, WRITE)                                                          \
    A(int8_t, basis_row, chains * m->num_row, WRITE)                                                          \
    A(int32_t, basis_count, chains, WRITE)                                                                    \
    A(int32_t, basis_owner, chains, WRITE)                                                                    \
    A(int64_t, dealt, 1, WRITE)                                                                               \
    A(uint8_t, taken, chains, WRITE)
/* clang-format on */

#define COUNT(type, name, count, access) +1
enum { BLOCK_ARRAY_COUNT = 0 BLOCK_ARRAYS(COUNT), READ = 0, WRITE = 1 };
#undef COUNT

static bool pool_fits(pool_view *pool, const Py_buffer *intercept, const Py_buffer *slope, const Py_buffer *active) {
    const Py_ssize_t count = pool->count, f64 = (Py_ssize_t)sizeof(double);
    return count >= 0 && intercept->len >= count * f64 && slope->len >= count * pool->width * f64 &&
           (active->buf == NULL || active->len >= count);
}

/* Whether a failed opening can be continued with these arguments: its LP is still the one that is loaded. */
static bool can_resume(const Session *self, PyObject *model, const lp_block *b, const pool_view *pool, int32_t begin,
                       int32_t end) {
    const lp_session *s = &self->session;
    return self->failed && self->model == model && s->model == &((Model *)model)->model && s->chain == begin &&
           begin < end && s->opening < b->openings && pool->count <= s->slot_capacity &&
           indices_within(s->present, s->num_present, 0, pool->count);
}

/* Take the arguments of a block and solve it, alone or (`together`) with the helpers. */
static PyObject *solve_block(PyObject *object, PyObject *args, bool together) {
    Session *self = (Session *)object;
    PyObject *model_object, *arrays, *result = NULL;
    lp_block b = {0};
    pool_view pool = {0};
    int begin, end, values_per_chain, lazy, retries;
    if (!PyArg_ParseTuple(args, "O!O!iiiiiippdddiiiiiiii", Model_type, &model_object, &PyTuple_Type, &arrays, &b.chains,
                          &b.openings, &b.plan, &b.starts, &pool.count, &pool.width, &values_per_chain, &lazy,
                          &b.pool_tolerance, &b.primal_tolerance, &b.dual_tolerance, &b.rows_per_round, &b.seed_rows,
                          &b.tableau_entries, &b.kernel_rows, &b.iteration_limit, &begin, &end, &retries))
        return NULL;
    const lp_model *m = &((Model *)model_object)->model;
    b.values_per_chain = values_per_chain;
    b.lazy = lazy;
    const char *fault = count_fault(m, &b, &pool, begin, end);
    if (PyTuple_Size(arrays) != BLOCK_ARRAY_COUNT)
        return PyErr_Format(PyExc_ValueError, "block: expected %d arrays, got %zd", BLOCK_ARRAY_COUNT,
                            PyTuple_Size(arrays));
    if (fault == NULL && retries >= 0 && !can_resume(self, model_object, &b, &pool, begin, end))
        fault = "the block whose opening failed, to continue it";
    if (fault != NULL)
        return PyErr_Format(PyExc_ValueError, "block: expected %s, got something else", fault);
    const Py_ssize_t chains = b.chains, solves = chains * b.openings;
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
#define TAKE(type, name, count, access)                                                        \
    view.name = &views[at];                                                                    \
    if (PyTuple_GetItem(arrays, at) != Py_None) {                                              \
        if (!take(PyTuple_GetItem(arrays, at), view.name, sizeof(type), count, access, #name)) \
            goto done;                                                                         \
        array.name = view.name->buf;                                                           \
    }                                                                                          \
    at++;
    BLOCK_ARRAYS(TAKE)
#undef TAKE
    b.x = array.x, b.values = array.values, b.seed = array.seed;
    b.start_known = array.start_known, b.start_col = array.start_col, b.start_row = array.start_row;
    b.start_pool = array.start_pool, b.start_slots = array.start_slots;
    b.objective = array.objective, b.gradient = array.gradient, b.output = array.output, b.head = array.head;
    b.iterations = array.iterations, b.rounds = array.rounds, b.retries = array.retries, b.by_highs = array.by_highs;
    b.rejected = array.rejected, b.certified = array.certified;
    b.primal = array.primal, b.col_dual = array.col_dual, b.row_dual = array.row_dual;
    b.basis_col = array.basis_col, b.basis_row = array.basis_row, b.basis_count = array.basis_count;
    b.basis_owner = array.basis_owner;
    b.dealt = (_Atomic int64_t *)array.dealt, b.taken = array.taken;
    if (array.intercept != NULL) {
        pool.intercept = array.intercept, pool.slope = array.slope, pool.active = array.active;
        pool.stride = pool.width;
        if (array.slope == NULL || pool.width != m->outputs_size ||
            !pool_fits(&pool, view.intercept, view.slope, view.active)) {
            PyErr_SetString(PyExc_ValueError, "pool: the arrays are smaller than its count");
            goto done;
        }
        b.pool = &pool;
    }
    fault = block_fault(m, &b, view.start_slots->len / (Py_ssize_t)sizeof(int32_t));
    if (fault != NULL)
        PyErr_Format(PyExc_ValueError, "block: expected %s, got something else", fault);
    else if (together && self->team == NULL)
        PyErr_SetString(PyExc_RuntimeError, "this session leads no team: call lead first");
    else
        result = together ? solve_by_team(self, model_object, &b, begin, end)
                          : solve_alone(self, model_object, &b, begin, end, retries);
done:
    for (int v = 0; v < BLOCK_ARRAY_COUNT; v++)
        if (views[v].obj != NULL)
            PyBuffer_Release(&views[v]);
    return result;
}

static PyObject *Session_solve(PyObject *object, PyObject *args) {
    return solve_block(object, args, false);
}

static PyObject *Session_solve_together(PyObject *object, PyObject *args) {
    return solve_block(object, args, true);
}

static PyMethodDef Session_methods[] = {
    {"lead", Session_lead, METH_VARARGS, "Lead other sessions, each with a thread of its own."},
    {"solve_together", Session_solve_together, METH_VARARGS, "Solve chains with the helpers; None, or what failed."},
    {"set_option", Session_set_option, METH_VARARGS, "Set one HiGHS option; False when HiGHS refuses it."},
    {"solve", Session_solve, METH_VARARGS, "Solve chains of a block; None, or (chain, opening, status) of a failure."},
    {"clear", Session_clear, METH_NOARGS, "Forget everything but the LP."},
    {"run", Session_run, METH_NOARGS, "Run HiGHS on the LP as it is; its model status."},
    {"keep_basis", Session_keep_basis, METH_NOARGS, "Remember the current basis; False where there is none."},
    {"put_basis", Session_put_basis, METH_NOARGS, "Start the next run from the remembered basis."},
    {"present", Session_present, METH_NOARGS, "Pool slots in the LP, as int32 bytes."},
    {"reject_answers", Session_reject_answers, METH_VARARGS,
     "Reject the next answers of HiGHS or of the kernel: for tests."},
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
static PyType_Spec Session_spec = {"pycobre._native.lp.Session", sizeof(Session), 0, Py_TPFLAGS_DEFAULT, Session_slots};

/* ---- module ---- */

static PyObject *open_library(PyObject *module, PyObject *args) {
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
    PyModuleDef_HEAD_INIT,
    "lp",
    "Blocks of chains of LPs, solved by HiGHS without the interpreter.",
    -1,
    functions,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit_lp(void) {
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
