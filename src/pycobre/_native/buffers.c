/* pycobre._native.buffers: whether buffers may take the fast path, decided in some nanoseconds.
 *
 * True means that everything pycobre.comm.checks would verify holds. False means only that it must look itself:
 * subclasses, structured dtypes, views that overlap, mistakes. So the rules and the words stay in one place.
 */
#include "ndarray.h"

/* Two arrays of one type in separate memory. */
static bool look_at_pair(PyObject *const *args, Py_buffer *send, Py_buffer *recv) {
    if (!ndarray_look(args[0], false, send) || !ndarray_look(args[1], true, recv))
        return false;
    const char *a = send->buf, *b = recv->buf;
    return send->format[0] == recv->format[0] && (a + send->len <= b || b + recv->len <= a);
}

static bool expect(const char *name, Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted)
        return true;
    PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", name, wanted, given);
    return false;
}

static PyObject *fits_allreduce(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    Py_buffer send, recv;
    if (!expect("fits_allreduce", nargs, 2))
        return NULL;
    return PyBool_FromLong(look_at_pair(args, &send, &recv) && send.len == recv.len && send.len > 0 &&
                           send.format[0] != '?');
}

static PyObject *fits_allgatherv(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    Py_buffer send, recv;
    if (!expect("fits_allgatherv", nargs, 4))
        return NULL;
    Py_ssize_t count = PyLong_AsSsize_t(args[2]), needed = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred())
        PyErr_Clear(); /* a size beyond any array's: -1 fits none */
    return PyBool_FromLong(count >= 0 && needed >= 0 && look_at_pair(args, &send, &recv) &&
                           send.len / send.itemsize == count && recv.len / recv.itemsize >= needed);
}

static PyObject *fits_broadcast(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    Py_buffer buf;
    if (!expect("fits_broadcast", nargs, 2))
        return NULL;
    return PyBool_FromLong(ndarray_look(args[0], args[1] == Py_True, &buf));
}

#define FUNCTION(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef methods[] = {FUNCTION(fits_allreduce), FUNCTION(fits_allgatherv), FUNCTION(fits_broadcast), {0}};

static int execute(PyObject *module) {
    (void)module;
    return ndarray_learn() ? 0 : -1;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pycobre._native.buffers",
    .m_doc = "Whether buffers may take the fast path, decided quickly.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_buffers(void) {
    return PyModuleDef_Init(&definition);
}
