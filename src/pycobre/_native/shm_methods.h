/* The collectives as methods: each takes its buffers, describes the call, and lets the channel do it.
 *
 * Part of shm.c, which alone includes it.
 */
#ifndef PYCOBRE_SHM_METHODS_H
#define PYCOBRE_SHM_METHODS_H

#include "shm_python.h"

enum { OP_BARRIER = 1, OP_ALLGATHERV, OP_ALLREDUCE, OP_BROADCAST };

static PyObject *channel_barrier(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    shm_call call = {0};
    long op;
    if (!expect("barrier", nargs, 2) || !is_usable(self) || !take_sequence(args[0], &call) ||
        !take_small(args[1], UINT8_MAX, &op))
        return NULL;
    call.op = (uint8_t)op;
    begin(self, 0);
    return end(self, shm_barrier(&self->channel, &call));
}

/* A hash of all ranks' counts, count by count. */
#define DIGEST_START 2166136261u
static uint32_t digest_count(uint32_t digest, uint64_t count) {
    digest = (digest ^ (uint32_t)count) * 16777619u;
    return (digest ^ (uint32_t)(count >> 32)) * 16777619u;
}

static bool take_layout(Channel *self, PyObject *counts, PyObject *displs, size_t recv_elements, shm_call *call) {
    uint32_t digest = DIGEST_START;
    for (uint32_t r = 0; r < self->channel.size; r++) {
        PyObject *count = PyTuple_GetItem(counts, r);
        PyObject *displ = count == NULL ? NULL : PyTuple_GetItem(displs, r);
        if (displ == NULL)
            return false;
        self->counts[r] = PyLong_AsSize_t(count);
        self->displs[r] = PyLong_AsSize_t(displ);
        if (PyErr_Occurred())
            return false;
        if (self->counts[r] > recv_elements || self->displs[r] > recv_elements - self->counts[r]) {
            PyErr_Format(PyExc_ValueError, "the range of rank %u is outside recv", (unsigned)r);
            return false;
        }
        digest = digest_count(digest, self->counts[r]);
    }
    call->digest = digest;
    return true;
}

static PyObject *channel_allgatherv(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    shm_call call = {.op = OP_ALLGATHERV, .expected = self->counts};
    Py_buffer send, recv;
    PyObject *result = NULL;
    if (!expect("allgatherv", nargs, 5) || !is_usable(self) || !take_sequence(args[0], &call))
        return NULL;
    if (!take_buffer(args[1], 0, &send))
        return NULL;
    if (take_buffer(args[2], PyBUF_WRITABLE, &recv)) {
        size_t itemsize = (size_t)(recv.itemsize > 0 ? recv.itemsize : 1);
        if (take_layout(self, args[3], args[4], (size_t)recv.len / itemsize, &call)) {
            call.dtype = dtype_tag(&send);
            call.count = (size_t)send.len / itemsize;
            if (call.count != self->counts[self->channel.rank])
                PyErr_SetString(PyExc_ValueError, "send does not have this rank's count of elements");
            else {
                begin(self, (size_t)recv.len);
                result = end(self, shm_allgatherv(&self->channel, &call, send.buf, recv.buf, self->counts, self->displs,
                                                  itemsize));
            }
        }
        PyBuffer_Release(&recv);
    }
    PyBuffer_Release(&send);
    return result;
}

/* Equal parts of any type under any operation's name: regions agree on what was allocated, and Python folds
 * the types that have no kernel here. */
static PyObject *channel_exchange(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    shm_call call = {0};
    Py_buffer send, recv;
    PyObject *result = NULL;
    long op, reduce;
    if (!expect("exchange", nargs, 7) || !is_usable(self) || !take_sequence(args[0], &call) ||
        !take_small(args[1], UINT8_MAX, &op) || !take_small(args[2], UINT8_MAX, &reduce))
        return NULL;
    unsigned long dtype = PyLong_AsUnsignedLong(args[3]);
    call.op = (uint8_t)op, call.reduce = (uint8_t)reduce, call.dtype = (uint32_t)dtype;
    call.count = PyLong_AsUnsignedLongLong(args[4]);
    if (PyErr_Occurred() || !take_buffer(args[5], 0, &send))
        return NULL;
    if (take_buffer(args[6], PyBUF_WRITABLE, &recv)) {
        if (recv.len != send.len * (Py_ssize_t)self->channel.size)
            PyErr_SetString(PyExc_ValueError, "recv must hold one send of every rank");
        else {
            for (uint32_t r = 0; r < self->channel.size; r++) {
                self->counts[r] = (uint64_t)send.len;
                self->displs[r] = (uint64_t)send.len * r;
            }
            begin(self, (size_t)recv.len);
            result = end(self, shm_gather(&self->channel, &call, send.buf, recv.buf, self->counts, self->displs, 1));
        }
        PyBuffer_Release(&recv);
    }
    PyBuffer_Release(&send);
    return result;
}

static PyObject *channel_allreduce(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    shm_call call = {.op = OP_ALLREDUCE};
    Py_buffer send, recv;
    PyObject *result = NULL;
    if (!expect("allreduce", nargs, 4) || !is_usable(self) || !take_sequence(args[0], &call))
        return NULL;
    for (uint8_t i = 0; i < 3; i++)
        if (args[3] == self->reduce_ops[i])
            call.reduce = (uint8_t)(SHM_SUM + i);
    if (call.reduce == 0) {
        PyErr_SetString(PyExc_TypeError, "allreduce: not a reduce operation of this channel");
        return NULL;
    }
    if (!take_buffer(args[1], 0, &send))
        return NULL;
    if (take_buffer(args[2], PyBUF_WRITABLE, &recv)) {
        call.dtype = dtype_tag(&send);
        shm_fold fold = shm_fold_for((char)(call.dtype >> 8), (size_t)send.itemsize, call.reduce);
        if (send.len != recv.len || send.itemsize != recv.itemsize)
            PyErr_SetString(PyExc_ValueError, "send and recv differ in size");
        else if (fold == NULL)
            result = Py_NewRef(Py_NotImplemented);
        else {
            call.count = (uint64_t)(send.len / send.itemsize);
            begin(self, (size_t)send.len);
            result = end(self, shm_allreduce(&self->channel, &call, send.buf, recv.buf, (size_t)send.itemsize, fold));
        }
        PyBuffer_Release(&recv);
    }
    PyBuffer_Release(&send);
    return result;
}

static PyObject *channel_broadcast(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    shm_call call = {.op = OP_BROADCAST};
    Py_buffer buf;
    long root;
    if (!expect("broadcast", nargs, 3) || !is_usable(self) || !take_sequence(args[0], &call) ||
        !take_small(args[2], (long)self->channel.size - 1, &root))
        return NULL;
    call.root = (uint16_t)root;
    if (!take_buffer(args[1], call.root == self->channel.rank ? 0 : PyBUF_WRITABLE, &buf))
        return NULL;
    call.dtype = dtype_tag(&buf);
    call.count = buf.itemsize > 0 ? (uint64_t)(buf.len / buf.itemsize) : 0;
    begin(self, (size_t)buf.len);
    PyObject *result = end(self, shm_broadcast(&self->channel, &call, buf.buf, (size_t)buf.len));
    PyBuffer_Release(&buf);
    return result;
}

#endif
