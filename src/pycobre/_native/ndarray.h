/* Looking at a NumPy array instead of asking it for a buffer.
 *
 * The buffer protocol makes NumPy write down shape and format anew for every call: a tenth of a microsecond for each
 * array, twice what a small collective needs to reach the other core. The fields read here are those that the macros
 * of NumPy's own headers read inside every extension module, so they stay where they are. All the same they are
 * compared, once, with what arrays say of themselves; where anything differs no array is ever recognised, and
 * everybody goes on through the buffer protocol.
 */
#ifndef PYCOBRE_NDARRAY_H
#define PYCOBRE_NDARRAY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base, *descr;
    int flags;
} ndarray_fields;

typedef struct {
    PyObject_HEAD
    PyTypeObject *scalar;
    char kind, letter, byteorder;
} ndarray_dtype;

#define NDARRAY_CONTIGUOUS 0x0001
#define NDARRAY_ALIGNED 0x0100
#define NDARRAY_WRITEABLE 0x0400

/* The class of arrays whose fields are where we expect them; NULL until that is known, or if they are not. */
static PyTypeObject *ndarray_known = NULL;

/* Format strings and sizes of the number types, by their letter. */
static char ndarray_formats[128][2];
static unsigned char ndarray_itemsizes[128];

/* Fills `view` for a C-contiguous, aligned ndarray of a number type in native byte order; nothing needs to be released,
 * though it may. False, without an error, for everything else. */
static bool ndarray_look(PyObject *object, bool writable, Py_buffer *view) {
    if (ndarray_known == NULL || Py_TYPE(object) != ndarray_known)
        return false;
    const ndarray_fields *array = (const ndarray_fields *)object;
    const ndarray_dtype *dtype = (const ndarray_dtype *)array->descr;
    int wanted = NDARRAY_CONTIGUOUS | NDARRAY_ALIGNED | (writable ? NDARRAY_WRITEABLE : 0);
    unsigned char letter = (unsigned char)dtype->letter;
    if ((array->flags & wanted) != wanted || letter >= 128 || ndarray_itemsizes[letter] == 0)
        return false;
    if (dtype->byteorder != '=' && dtype->byteorder != '|')
        return false;
    Py_ssize_t count = 1;
    for (int i = 0; i < array->nd; i++)
        count *= array->dimensions[i];
    view->obj = NULL;
    view->buf = array->data;
    view->itemsize = ndarray_itemsizes[letter];
    view->len = count * view->itemsize;
    view->format = ndarray_formats[letter];
    view->readonly = !writable;
    return true;
}

/* Whether `array.flags.num` is this number. */
static bool ndarray_has_flags(PyObject *array, int number) {
    PyObject *flags = PyObject_GetAttrString(array, "flags");
    PyObject *value = flags == NULL ? NULL : PyObject_GetAttrString(flags, "num");
    bool same = value != NULL && PyLong_AsLong(value) == number;
    Py_XDECREF(value);
    Py_XDECREF(flags);
    return same;
}

/* Compares the fields of a read-only array of three numbers of a type with what the array says of itself. */
static bool ndarray_verify(PyObject *numpy, PyTypeObject *type, char letter) {
    PyObject *object = PyObject_CallMethod(numpy, "zeros", "is#", 3, &letter, (Py_ssize_t)1);
    PyObject *frozen = object == NULL ? NULL : PyObject_CallMethod(object, "setflags", "i", 0);
    PyObject *dtype = frozen == NULL ? NULL : PyObject_GetAttrString(object, "dtype");
    Py_buffer view = {0};
    bool same = dtype != NULL && PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) == 0;
    if (same) {
        const ndarray_fields *array = (const ndarray_fields *)object;
        same = Py_TYPE(object) == type && array->data == view.buf && array->nd == 1 && array->descr == dtype &&
               !(array->flags & NDARRAY_WRITEABLE) && ndarray_has_flags(object, array->flags) &&
               array->dimensions[0] == 3 && ((const ndarray_dtype *)dtype)->letter == letter;
        ndarray_formats[(unsigned char)letter][0] = letter;
        ndarray_itemsizes[(unsigned char)letter] = (unsigned char)(view.len / 3);
    }
    PyBuffer_Release(&view);
    Py_XDECREF(dtype);
    Py_XDECREF(frozen);
    Py_XDECREF(object);
    return same;
}

/* To be called once by a module that is to recognise arrays. False: an exception is set. */
static bool ndarray_learn(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL)
        return false;
    PyObject *type = PyObject_GetAttrString(numpy, "ndarray"), *dtype = PyObject_GetAttrString(numpy, "dtype");
    PyObject *big_endian = dtype == NULL ? NULL : PyObject_CallFunction(dtype, "s", ">i4");
    if (type == NULL || big_endian == NULL) {
        Py_XDECREF(type), Py_XDECREF(dtype), Py_XDECREF(big_endian), Py_DECREF(numpy);
        return false;
    }
    PyObject *size = PyObject_GetAttrString(type, "__basicsize__");
    bool same = size != NULL && PyLong_AsSize_t(size) >= sizeof(ndarray_fields) &&
                ((const ndarray_dtype *)big_endian)->byteorder == (PY_BIG_ENDIAN ? '=' : '>');
    for (const char *letter = "?bBhHiIlLqQefdg"; same && *letter != '\0'; letter++)
        same = ndarray_verify(numpy, (PyTypeObject *)type, *letter);
    PyErr_Clear(); /* what could not be verified is not believed */
    if (same)
        ndarray_known = (PyTypeObject *)type; /* and keeps this reference: the class is never freed */
    else
        Py_DECREF(type);
    Py_XDECREF(size), Py_DECREF(dtype), Py_DECREF(big_endian), Py_DECREF(numpy);
    return true;
}

#endif
