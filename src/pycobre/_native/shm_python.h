/* Between Python and the channel: the object, its arguments and failures, and who holds the GIL when.
 *
 * Part of shm.c, which alone includes it.
 */
#ifndef PYCOBRE_SHM_PYTHON_H
#define PYCOBRE_SHM_PYTHON_H

#include "ndarray.h"
#include "shm_collectives.h"

/* A forked child shares the segment but is no rank: neither its calls nor its end may touch it. */
static unsigned forks = 0;
static void count_fork(void) {
    forks++;
}

typedef struct {
    PyObject_HEAD
    shm_channel channel;
    Py_buffer memory; /* the mapping; memory.obj is NULL once released */
    PyObject *reduce_ops[3];
    uint64_t *counts, *displs;
    uint64_t probe_value;
    PyThreadState *waiting; /* of the thread inside a collective, while it has given up the GIL; else NULL */
    bool lazy;              /* it gave it up only to wait */
    unsigned forks;
    bool busy, closed;
} Channel;

/* --- entering and leaving a collective --- */

/* The GIL is kept for what takes no longer than giving it up: copying a little and spinning some microseconds. */
#define COPY_WITH_GIL (32u << 10)

static void before_wait(void *context) {
    Channel *self = context;
    self->lazy = self->waiting == NULL;
    if (self->lazy)
        self->waiting = PyEval_SaveThread();
}

static void after_wait(void *context) {
    Channel *self = context;
    if (!self->lazy)
        return;
    PyEval_RestoreThread(self->waiting);
    self->waiting = NULL;
}

static bool interrupted(void *context) {
    Channel *self = context;
    PyEval_RestoreThread(self->waiting);
    bool leave = PyErr_CheckSignals() != 0;
    if (!leave && self->closed) {
        PyErr_SetString(PyExc_RuntimeError, "another thread closed the communicator during this collective");
        leave = true;
    }
    self->waiting = PyEval_SaveThread();
    return leave;
}

static void release_mapping(Channel *self) {
    for (uint32_t r = 0; r < self->channel.size; r++) {
        if (self->channel.watched[r].fd >= 0)
            close(self->channel.watched[r].fd);
        self->channel.watched[r].fd = -1;
    }
    if (self->memory.obj != NULL)
        PyBuffer_Release(&self->memory);
}

/* Raises what pycobre.comm.misuse says of a wrong use, by the name of its function there. */
static void refuse_misuse(Channel *self, const char *name) {
    PyObject *module = PyImport_ImportModule("pycobre.comm.misuse");
    PyObject *error = module == NULL ? NULL : PyObject_CallMethod(module, name, "I", (unsigned)self->channel.rank);
    if (error != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error), Py_XDECREF(module);
}

static bool is_usable(Channel *self) {
    if (self->closed || self->memory.obj == NULL)
        PyErr_SetString(PyExc_ValueError, "the channel is closed");
    else if (self->forks != forks)
        refuse_misuse(self, "forked");
    else if (self->busy)
        refuse_misuse(self, "second_thread");
    else
        return true;
    return false;
}

static PyObject *describe_call(const shm_slot *slot) {
    return Py_BuildValue("(iiiIKK)", slot->op, slot->reduce, slot->root, (unsigned)slot->dtype,
                         (unsigned long long)slot->sequence, (unsigned long long)slot->count);
}

static PyObject *describe_failure(const shm_channel *channel) {
    const shm_failure *failure = &channel->failure;
    if (failure->kind == SHM_OK)
        Py_RETURN_NONE;
    bool mismatch = failure->kind == SHM_MISMATCH;
    PyObject *mine = mismatch ? describe_call(&failure->mine) : Py_NewRef(Py_None);
    PyObject *theirs = mismatch ? describe_call(&failure->theirs) : Py_NewRef(Py_None);
    const char *reason = "";
    char text[SHM_REASON_BYTES];
    if (failure->kind == SHM_ABORTED) {
        memcpy(text, channel->segment->ranks[failure->author].reason, sizeof text);
        text[sizeof text - 1] = '\0';
        reason = text;
    }
    PyObject *decoded = PyUnicode_DecodeUTF8(reason, (Py_ssize_t)strlen(reason), "replace");
    if (mine == NULL || theirs == NULL || decoded == NULL) {
        Py_XDECREF(mine), Py_XDECREF(theirs), Py_XDECREF(decoded);
        return NULL;
    }
    return Py_BuildValue("(iIIiNNN)", (int)failure->kind, (unsigned)failure->culprit, (unsigned)failure->author,
                         (int)channel->segment->ranks[failure->culprit].pid, decoded, mine, theirs);
}

static void begin(Channel *self, size_t bytes) {
    self->busy = true;
    if (bytes > COPY_WITH_GIL)
        self->waiting = PyEval_SaveThread();
}

static PyObject *end(Channel *self, int status) {
    if (self->waiting != NULL)
        PyEval_RestoreThread(self->waiting);
    self->waiting = NULL;
    self->busy = false;
    PyObject *result;
    if (status == 0)
        result = Py_NewRef(Py_None);
    else
        result = PyErr_Occurred() ? NULL : describe_failure(&self->channel);
    if (self->closed)
        release_mapping(self);
    return result;
}

/* --- arguments --- */

static bool expect(const char *name, Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted)
        return true;
    PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", name, wanted, given);
    return false;
}

static bool take_buffer(PyObject *object, int flags, Py_buffer *view) {
    if (ndarray_look(object, flags == PyBUF_WRITABLE, view))
        return true;
    if (PyObject_GetBuffer(object, view, PyBUF_ND | PyBUF_FORMAT | flags) == 0)
        return true;
    /* NumPy refuses some dtypes (dates) with ValueError; the caller then passes them as plain bytes. */
    if (PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        PyErr_SetString(PyExc_BufferError, "this dtype has no buffer format");
    }
    return false;
}

/* A name for the dtype that all ranks derive alike: class and itemsize, or a hash of a composite's format. */
static uint32_t dtype_tag(const Py_buffer *view) {
    const char *format = view->format == NULL ? "B" : view->format;
    char kind = 0;
    if (format[0] == 'Z' && format[1] != '\0' && format[2] == '\0')
        kind = 'c';
    else if (format[0] != '\0' && format[1] == '\0') {
        if (strchr("bhilq", format[0]))
            kind = 'i';
        else if (strchr("BHILQ", format[0]))
            kind = 'u';
        else if (strchr("efdg", format[0]))
            kind = 'f';
        else if (format[0] == '?')
            kind = 'b';
    }
    if (kind != 0)
        return (uint32_t)kind << 8 | (uint32_t)view->itemsize;
    /* NumPy writes native fields one way or another according to how the array happens to be aligned. */
    uint32_t hash = 2166136261u ^ (uint32_t)view->itemsize;
    bool in_name = false;
    for (; *format != '\0'; format++) {
        char letter = *format;
        if (letter == ':')
            in_name = !in_name;
        if (!in_name && strchr("@=^", letter))
            continue;
        if (!in_name && (letter == 'l' || letter == 'L'))
            letter = letter == 'l' ? 'q' : 'Q';
        hash = (hash ^ (unsigned char)letter) * 16777619u;
    }
    return hash | 0x80000000u;
}

static bool take_sequence(PyObject *object, shm_call *call) {
    call->sequence = PyLong_AsUnsignedLongLong(object);
    return call->sequence != (uint64_t)-1 || !PyErr_Occurred();
}

static bool take_small(PyObject *object, long limit, long *value) {
    *value = PyLong_AsLong(object);
    if (*value == -1 && PyErr_Occurred())
        return false;
    if (*value >= 0 && *value <= limit)
        return true;
    PyErr_Format(PyExc_ValueError, "expected 0 to %ld, got %ld", limit, *value);
    return false;
}

#endif
