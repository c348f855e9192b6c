/* The fast path of a communicator's public collectives: no Python code runs between the caller and the channel.
 *
 * `FastPathCollectives` comes before `Communicator` in a backend's bases. A call takes the fast path when the communicator
 * refuses nothing and the arguments are plain contiguous arrays of numbers that satisfy every precondition beyond doubt. Any
 * other call goes to the method of the same name of the next class, so that the rules, their order and their words
 * stay in pycobre.comm.checks. The attributes that both paths need are members here: there is one number of the last
 * collective and one refusal, whichever path a call takes.
 *
 * Part of shm.c, which alone includes it.
 */
#ifndef PYCOBRE_SHM_FAST_PATH_H
#define PYCOBRE_SHM_FAST_PATH_H

#include "shm_methods.h"

#include <structmember.h> /* needs Python.h before it */

static PyTypeObject *channel_type = NULL, *fast_path_type = NULL;

typedef struct {
    PyObject_HEAD
    PyObject *refusal; /* what the next collective raises; None, or NULL, while they are allowed */
    PyObject *channel;
    unsigned long long sequence; /* of the last collective */
    /* The last layout of an allgatherv, and the tuples it was read from: tuples of ints do not change. */
    PyObject *counts_seen, *displs_seen;
    uint64_t *counts, *displs;
    uint64_t needed;
    uint32_t digest;
} FastPath;

/* The channel, if collectives are allowed. NULL with an exception: the wrong process or thread. NULL without: ask the
 * next class. It is asked before a call gets its number, so a call that is refused leaves no gap. */
static Channel *open_channel(FastPath *self) {
    if (self->refusal != NULL && self->refusal != Py_None)
        return NULL;
    if (self->channel == NULL || Py_TYPE(self->channel) != channel_type)
        return NULL;
    Channel *channel = (Channel *)self->channel;
    return is_usable(channel) ? channel : NULL;
}

/* super().name(*args, **kwargs) */
static PyObject *ask_next_class(FastPath *self, const char *name, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *keywords) {
    if (PyErr_Occurred())
        return NULL;
    PyObject *next = PyObject_CallFunction((PyObject *)&PySuper_Type, "OO", fast_path_type, self);
    PyObject *method = next == NULL ? NULL : PyObject_GetAttrString(next, name);
    Py_ssize_t named = keywords == NULL ? 0 : PyTuple_Size(keywords);
    PyObject *positional = PyTuple_New(nargs), *by_name = named > 0 ? PyDict_New() : NULL, *result = NULL;
    bool ready = method != NULL && positional != NULL && (named == 0 || by_name != NULL);
    for (Py_ssize_t i = 0; ready && i < nargs; i++)
        ready = PyTuple_SetItem(positional, i, Py_NewRef(args[i])) == 0;
    for (Py_ssize_t i = 0; ready && i < named; i++)
        ready = PyDict_SetItem(by_name, PyTuple_GetItem(keywords, i), args[nargs + i]) == 0;
    if (ready)
        result = PyObject_Call(method, positional, by_name);
    Py_XDECREF(next), Py_XDECREF(method), Py_XDECREF(positional), Py_XDECREF(by_name);
    return result;
}

/* None for a collective that completed; else the backend makes the exception, refuses what follows, and raises it. */
static PyObject *conclude(FastPath *self, const char *operation, int status) {
    PyObject *failure = end((Channel *)self->channel, status);
    if (failure == NULL || failure == Py_None)
        return failure;
    return PyObject_CallMethod((PyObject *)self, "_fail", "sN", operation, failure);
}

static bool take_pair(PyObject *const *args, Py_buffer *send, Py_buffer *recv) {
    if (!ndarray_look(args[0], false, send) || !ndarray_look(args[1], true, recv))
        return false;
    const char *a = send->buf, *b = recv->buf;
    return send->format[0] == recv->format[0] && (a + send->len <= b || b + recv->len <= a);
}

static PyObject *fast_path_barrier(FastPath *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    Channel *channel = open_channel(self);
    if (channel == NULL || nargs != 0 || keywords != NULL)
        return ask_next_class(self, "barrier", args, nargs, keywords);
    shm_call call = {.op = OP_BARRIER, .sequence = ++self->sequence};
    begin(channel, 0);
    return conclude(self, "barrier", shm_barrier(&channel->channel, &call));
}

static PyObject *fast_path_allreduce(FastPath *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    Channel *channel = open_channel(self);
    shm_call call = {.op = OP_ALLREDUCE};
    shm_fold fold = NULL;
    Py_buffer send, recv;
    if (channel != NULL && nargs == 3 && keywords == NULL && take_pair(args, &send, &recv) && send.len > 0 &&
        send.len == recv.len) {
        for (uint8_t i = 0; i < 3; i++)
            if (args[2] == channel->reduce_ops[i])
                call.reduce = (uint8_t)(SHM_SUM + i);
        call.dtype = dtype_tag(&send);
        if (call.reduce != 0)
            fold = shm_fold_for((char)(call.dtype >> 8), (size_t)send.itemsize, call.reduce);
    }
    if (fold == NULL)
        return ask_next_class(self, "allreduce", args, nargs, keywords);
    call.sequence = ++self->sequence;
    call.count = (uint64_t)(send.len / send.itemsize);
    begin(channel, (size_t)send.len);
    return conclude(self, "allreduce",
                    shm_allreduce(&channel->channel, &call, send.buf, recv.buf, (size_t)send.itemsize, fold));
}

static PyObject *fast_path_broadcast(FastPath *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    Channel *channel = open_channel(self);
    shm_call call = {.op = OP_BROADCAST};
    Py_buffer buf;
    long root = 0;
    bool fits = channel != NULL && (nargs == 1 || nargs == 2) && keywords == NULL;
    if (fits && nargs == 2) {
        int overflow = 0;
        root = PyLong_CheckExact(args[1]) ? PyLong_AsLongAndOverflow(args[1], &overflow) : -1;
        fits = root >= 0 && root < (long)channel->channel.size;
    }
    if (!fits || !ndarray_look(args[0], (uint32_t)root != channel->channel.rank, &buf))
        return ask_next_class(self, "broadcast", args, nargs, keywords);
    call.sequence = ++self->sequence;
    call.root = (uint16_t)root;
    call.dtype = dtype_tag(&buf);
    call.count = (uint64_t)(buf.len / buf.itemsize);
    begin(channel, (size_t)buf.len);
    return conclude(self, "broadcast", shm_broadcast(&channel->channel, &call, buf.buf, (size_t)buf.len));
}

static void forget_layout(FastPath *self) {
    Py_CLEAR(self->counts_seen);
    Py_CLEAR(self->displs_seen);
}

/* Reads tuples or lists of ints, one per rank, whose ranges follow each other in rank order. False: look closely. */
static bool take_contiguous_layout(FastPath *self, Channel *channel, PyObject *counts, PyObject *displs) {
    if (self->counts_seen == counts && self->displs_seen == displs && counts != NULL)
        return true;
    forget_layout(self);
    Py_ssize_t size = channel->channel.size;
    bool tuples = PyTuple_CheckExact(counts) && PyTuple_CheckExact(displs);
    if (tuples ? PyTuple_Size(counts) != size || PyTuple_Size(displs) != size
               : !PyList_CheckExact(counts) || !PyList_CheckExact(displs) || PyList_Size(counts) != size ||
                     PyList_Size(displs) != size)
        return false;
    if (self->counts == NULL)
        self->counts = malloc(2 * (size_t)size * sizeof *self->counts);
    if (self->counts == NULL)
        return false;
    self->displs = self->counts + size;
    uint64_t last = 0;
    uint32_t digest = DIGEST_START;
    for (Py_ssize_t r = 0; r < size; r++) {
        PyObject *count = tuples ? PyTuple_GetItem(counts, r) : PyList_GetItem(counts, r);
        PyObject *displ = tuples ? PyTuple_GetItem(displs, r) : PyList_GetItem(displs, r);
        if (!PyLong_CheckExact(count) || !PyLong_CheckExact(displ))
            return false;
        int large[2];
        long long elements = PyLong_AsLongLongAndOverflow(count, &large[0]);
        long long start = PyLong_AsLongLongAndOverflow(displ, &large[1]);
        if (large[0] != 0 || large[1] != 0 || elements < 0 || start < 0 || (uint64_t)start < last)
            return false;
        self->counts[r] = (uint64_t)elements;
        self->displs[r] = (uint64_t)start;
        last = (uint64_t)start + (uint64_t)elements;
        digest = digest_count(digest, (uint64_t)elements);
    }
    self->needed = last;
    self->digest = digest;
    if (tuples) {
        self->counts_seen = Py_NewRef(counts);
        self->displs_seen = Py_NewRef(displs);
    }
    return true;
}

static PyObject *fast_path_allgatherv(FastPath *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) {
    Channel *channel = open_channel(self);
    Py_buffer send, recv;
    bool fits = channel != NULL && nargs == 4 && keywords == NULL && take_pair(args, &send, &recv) &&
                 take_contiguous_layout(self, channel, args[2], args[3]) &&
                 (uint64_t)(send.len / send.itemsize) == self->counts[channel->channel.rank] &&
                 (uint64_t)(recv.len / recv.itemsize) >= self->needed;
    if (!fits)
        return ask_next_class(self, "allgatherv", args, nargs, keywords);
    shm_call call = {.op = OP_ALLGATHERV, .expected = self->counts, .sequence = ++self->sequence};
    call.digest = self->digest;
    call.dtype = dtype_tag(&send);
    call.count = self->counts[channel->channel.rank];
    begin(channel, (size_t)recv.len);
    return conclude(self, "allgatherv",
                    shm_allgatherv(&channel->channel, &call, send.buf, recv.buf, self->counts, self->displs,
                                   (size_t)send.itemsize));
}

/* --- the type --- */

static int fast_path_traverse(FastPath *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->refusal);
    Py_VISIT(self->channel);
    Py_VISIT(self->counts_seen);
    Py_VISIT(self->displs_seen);
    return 0;
}

static int fast_path_clear(FastPath *self) {
    Py_CLEAR(self->refusal);
    Py_CLEAR(self->channel);
    forget_layout(self);
    return 0;
}

static void fast_path_dealloc(FastPath *self) {
    PyObject_GC_UnTrack(self);
    fast_path_clear(self);
    free(self->counts);
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

#define FAST_PATH(name) \
    {#name, (PyCFunction)(void (*)(void))fast_path_##name, METH_FASTCALL | METH_KEYWORDS, "See Communicator." #name "."}
static PyMethodDef fast_path_methods[] = {FAST_PATH(barrier), FAST_PATH(allreduce), FAST_PATH(broadcast), FAST_PATH(allgatherv), {0}};

static PyMemberDef fast_path_members[] = {
    {"_refusal", T_OBJECT, offsetof(FastPath, refusal), 0, NULL},
    {"_channel", T_OBJECT_EX, offsetof(FastPath, channel), 0, NULL},
    {"_sequence", T_ULONGLONG, offsetof(FastPath, sequence), 0, NULL},
    {0},
};

static PyType_Slot fast_path_slots[] = {
    {Py_tp_traverse, fast_path_traverse}, {Py_tp_clear, fast_path_clear},     {Py_tp_dealloc, fast_path_dealloc},
    {Py_tp_methods, fast_path_methods},   {Py_tp_members, fast_path_members}, {0, NULL},
};

static PyType_Spec fast_path_spec = {
    .name = "pycobre._native.shm.FastPathCollectives",
    .basicsize = sizeof(FastPath),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = fast_path_slots,
};

#endif
