/* pycobre._native.fold: contributions that lie one after another, folded in rank order.
 *
 * The kernels are those of shm_fold.h, hence the bits those of pycobre.comm.fold.fold_into.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <string.h>

#include "shm_fold.h"

static const Py_ssize_t WITH_GIL = 32 << 10; /* bytes; below, releasing it costs more than the fold */

static shm_fold kernel_for(const Py_buffer *view, long op) {
    const char *format = view->format;
    if (format == NULL || format[0] == '\0' || format[1] != '\0')
        return NULL;
    char kind = strchr("bhilq", format[0]) ? 'i' : strchr("BHILQ", format[0]) ? 'u' : strchr("fd", format[0]) ? 'f' : 0;
    return shm_fold_for(kind, (size_t)view->itemsize, (int)op);
}

static void fold(const Py_buffer *out, const Py_buffer *rows, shm_fold kernel) {
    const char *row = rows->buf;
    if (row != out->buf)
        memcpy(out->buf, row, (size_t)out->len);
    for (Py_ssize_t at = out->len; at < rows->len; at += out->len)
        kernel(out->buf, row + at, (size_t)(out->len / out->itemsize));
}

/* fold_rows(out, rows, op) -> whether it was done; not for types without a kernel. */
static PyObject *fold_rows(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 3)
        return PyErr_Format(PyExc_TypeError, "fold_rows: expected 3 arguments, got %zd", nargs);
    long op = PyLong_AsLong(args[2]);
    if (op == -1 && PyErr_Occurred())
        return NULL;
    if (op < SHM_SUM || op > SHM_MAX)
        return PyErr_Format(PyExc_ValueError, "fold_rows: there is no operation %ld", op);
    Py_buffer out, rows;
    if (PyObject_GetBuffer(args[0], &out, PyBUF_ND | PyBUF_FORMAT | PyBUF_WRITABLE) != 0)
        return NULL;
    if (PyObject_GetBuffer(args[1], &rows, PyBUF_SIMPLE) != 0) {
        PyBuffer_Release(&out);
        return NULL;
    }
    shm_fold kernel = kernel_for(&out, op);
    bool whole = out.len > 0 && rows.len > 0 && rows.len % out.len == 0;
    if (kernel != NULL && whole) {
        PyThreadState *released = rows.len > WITH_GIL ? PyEval_SaveThread() : NULL;
        fold(&out, &rows, kernel);
        if (released != NULL)
            PyEval_RestoreThread(released);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&out);
    if (!whole)
        return PyErr_Format(PyExc_ValueError, "fold_rows: expected rows as long as out, and one at least");
    return PyBool_FromLong(kernel != NULL);
}

static PyMethodDef methods[] = {
    {"fold_rows", (PyCFunction)(void (*)(void))fold_rows, METH_FASTCALL,
     "Fold rows, given one after another, into out."},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pycobre._native.fold",
    .m_doc = "Contributions that lie one after another, folded in rank order.",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_fold(void) {
    return PyModuleDef_Init(&definition);
}
