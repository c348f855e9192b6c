/* pycobre._native.shm: the shared-memory channel, as Python sees it.
 *
 *   shm_layout.h       what the bytes of the segment mean
 *   shm_wait.h         waiting for peers, and all that may end a wait
 *   shm_copy.h         stores past the caches          shm_fold.h   rank-order reductions
 *   shm_collectives.h  what ranks exchange
 *   shm_python.h       buffers in, failures out, the GIL
 *   shm_methods.h      the collectives as methods of the channel
 *   shm_fast_path.h    the collectives as methods of the communicator, without Python code in between
 *   shm.c              the life of a channel, and the module
 *
 * All but the last four are plain C and run under sanitizers without Python. Finding, creating and removing
 * segments is left to pycobre.comm.shm.segment. A collective returns None when it completed and otherwise a tuple
 * that describes the failure, from which pycobre.comm.shm.backend makes the exception.
 */
#include "shm_fast_path.h"

#include <pthread.h>

/* abort(reason): may be called from any thread, also while another one waits in a collective. */
static PyObject *channel_abort(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    if (!expect("abort", nargs, 1))
        return NULL;
    if (self->closed || self->memory.obj == NULL || self->forks != forks)
        Py_RETURN_NONE;
    PyObject *encoded = PyUnicode_AsEncodedString(args[0], "utf-8", "replace");
    if (encoded == NULL)
        return NULL;
    shm_channel *channel = &self->channel;
    if (atomic_load(&channel->segment->abort) == 0) {
        char *reason = channel->segment->ranks[channel->rank].reason;
        size_t length = shm_min((size_t)PyBytes_Size(encoded), SHM_REASON_BYTES - 1);
        memcpy(reason, PyBytes_AsString(encoded), length);
        reason[length] = '\0';
        shm_tell(channel, SHM_ABORTED, channel->rank);
    }
    Py_DECREF(encoded);
    Py_RETURN_NONE;
}

/* Tells the peers that this rank will not come again. The mapping stays while a thread is inside. */
static void leave(Channel *self) {
    if (self->closed || self->memory.obj == NULL)
        return;
    self->closed = true;
    if (self->forks == forks) {
        atomic_store(&self->channel.segment->ranks[self->channel.rank].state, SHM_CLOSED);
        shm_ring_all(&self->channel);
    }
    if (!self->busy)
        release_mapping(self);
}

static PyObject *channel_close(Channel *self, PyObject *unused) {
    (void)unused;
    leave(self);
    Py_RETURN_NONE;
}

/* peers() -> ((state, pid, start_time, pid_namespace, cpus), ...) by rank. */
static PyObject *channel_peers(Channel *self, PyObject *unused) {
    (void)unused;
    if (!is_usable(self))
        return NULL;
    PyObject *peers = PyTuple_New(self->channel.size);
    for (uint32_t r = 0; peers != NULL && r < self->channel.size; r++) {
        shm_rank *rank = &self->channel.segment->ranks[r];
        unsigned state = atomic_load_explicit(&rank->state, memory_order_acquire);
        PyObject *peer =
            Py_BuildValue("(IiKKy#)", state, (int)rank->pid, (unsigned long long)rank->start_time,
                          (unsigned long long)rank->pid_namespace, rank->cpus, (Py_ssize_t)sizeof rank->cpus);
        if (peer == NULL || PyTuple_SetItem(peers, r, peer) != 0)
            Py_CLEAR(peers);
    }
    return peers;
}

/* watch(rank, pidfd): the channel takes the descriptor over. */
static PyObject *channel_watch(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    long rank, pidfd;
    if (!expect("watch", nargs, 2) || !is_usable(self) || !take_small(args[0], (long)self->channel.size - 1, &rank) ||
        !take_small(args[1], INT_MAX, &pidfd))
        return NULL;
    self->channel.watched[rank].fd = (int)pidfd;
    Py_RETURN_NONE;
}

/* check() -> failure or None: what a waiting rank looks for between two slices of sleep. */
static PyObject *channel_check(Channel *self, PyObject *unused) {
    (void)unused;
    uint32_t culprit;
    if (!is_usable(self))
        return NULL;
    uint32_t told = atomic_load(&self->channel.segment->abort);
    shm_kind gone = told != 0 ? SHM_OK : shm_find_gone(&self->channel, &culprit);
    if (told != 0)
        shm_record(&self->channel, told);
    else if (gone != SHM_OK)
        shm_fail(&self->channel, gone, culprit);
    return describe_failure(&self->channel);
}

/* can_read(rank): whether that rank's memory may be read directly. */
static PyObject *channel_can_read(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    long peer;
    if (!expect("can_read", nargs, 1) || !is_usable(self) || !take_small(args[0], (long)self->channel.size - 1, &peer))
        return NULL;
    const shm_rank *rank = &self->channel.segment->ranks[peer];
    uint64_t found = 0;
    struct iovec local = {&found, sizeof found}, remote = {(void *)(uintptr_t)rank->probe, sizeof found};
    ssize_t got = process_vm_readv(rank->pid, &local, 1, &remote, 1, 0);
    return PyBool_FromLong(got == (ssize_t)sizeof found && found == rank->probe_value);
}

/* start(spin, direct): how to wait and how to move large payloads, once that is known. */
static PyObject *channel_start(Channel *self, PyObject *const *args, Py_ssize_t nargs) {
    if (!expect("start", nargs, 2) || !is_usable(self))
        return NULL;
    int spin = PyObject_IsTrue(args[0]), direct = PyObject_IsTrue(args[1]);
    if (spin < 0 || direct < 0)
        return NULL;
    self->channel.spin = spin != 0;
    self->channel.direct = direct != 0;
    Py_RETURN_NONE;
}

/* --- the type --- */

static int channel_init(Channel *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"memory",     "rank",          "size", "timeout_s", "reduce_ops",
                            "start_time", "pid_namespace", "cpus", NULL};
    PyObject *memory;
    unsigned rank, size;
    double timeout_s;
    unsigned long long start_time, pid_namespace;
    const char *cpus;
    Py_ssize_t cpu_bytes;
    if (self->memory.obj != NULL || self->closed) {
        PyErr_SetString(PyExc_TypeError, "a channel is initialised once");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OIId(OOO)KKy#", names, &memory, &rank, &size, &timeout_s,
                                     &self->reduce_ops[0], &self->reduce_ops[1], &self->reduce_ops[2], &start_time,
                                     &pid_namespace, &cpus, &cpu_bytes)) {
        memset(self->reduce_ops, 0, sizeof self->reduce_ops);
        return -1;
    }
    for (int i = 0; i < 3; i++)
        Py_INCREF(self->reduce_ops[i]);
    if (PyObject_GetBuffer(memory, &self->memory, PyBUF_WRITABLE) != 0)
        return -1;
    shm_segment *segment = self->memory.buf;
    if ((size_t)self->memory.len < sizeof *segment || segment->size != size || rank >= size ||
        segment->bytes != (uint64_t)self->memory.len || segment->bytes != shm_segment_bytes(size, segment->capacity)) {
        PyBuffer_Release(&self->memory);
        PyErr_SetString(PyExc_ValueError, "the memory is not a segment for this rank and size");
        return -1;
    }
    self->channel.watched = malloc(size * sizeof *self->channel.watched);
    self->counts = malloc(size * sizeof *self->counts);
    self->displs = malloc(size * sizeof *self->displs);
    if (self->channel.watched == NULL || self->counts == NULL || self->displs == NULL) {
        PyBuffer_Release(&self->memory);
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t r = 0; r < size; r++)
        self->channel.watched[r] = (struct pollfd){.fd = -1, .events = POLLIN};
    shm_bind(&self->channel, segment, rank);
    self->channel.timeout_ns = timeout_s < 9e9 ? (int64_t)(timeout_s * 1e9) : INT64_MAX / 2;
    self->channel.before_wait = before_wait;
    self->channel.after_wait = after_wait;
    self->channel.interrupted = interrupted;
    self->channel.context = self;
    self->forks = forks;

    /* Claim the rank. A rival loses the exchange and must not overwrite what the first has said of itself. */
    shm_rank *block = &segment->ranks[rank];
    uint32_t absent = SHM_ABSENT;
    if (!atomic_compare_exchange_strong(&block->state, &absent, SHM_CLAIMED)) {
        int pid = block->pid;
        PyBuffer_Release(&self->memory);
        PyErr_Format(PyExc_FileExistsError, "rank %u is already taken by process %d", rank, pid);
        return -1;
    }
    block->pid = getpid();
    block->start_time = start_time;
    block->pid_namespace = pid_namespace;
    memcpy(block->cpus, cpus, shm_min((size_t)cpu_bytes, sizeof block->cpus));
    self->probe_value = (uint64_t)shm_now_ns() ^ (uint64_t)block->pid << 40;
    block->probe = (uint64_t)(uintptr_t)&self->probe_value;
    block->probe_value = self->probe_value;
    atomic_store_explicit(&block->state, SHM_ATTACHED, memory_order_release);
    return 0;
}

static void channel_dealloc(Channel *self) {
    leave(self);
    if (self->memory.obj != NULL)
        release_mapping(self);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(self->reduce_ops[i]);
    free(self->channel.watched);
    free(self->counts);
    free(self->displs);
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

#define METHOD(name, flags) {#name, (PyCFunction)(void (*)(void))channel_##name, flags, NULL}
static PyMethodDef channel_methods[] = {
    METHOD(barrier, METH_FASTCALL),
    METHOD(allgatherv, METH_FASTCALL),
    METHOD(exchange, METH_FASTCALL),
    METHOD(allreduce, METH_FASTCALL),
    METHOD(broadcast, METH_FASTCALL),
    METHOD(abort, METH_FASTCALL),
    METHOD(watch, METH_FASTCALL),
    METHOD(can_read, METH_FASTCALL),
    METHOD(start, METH_FASTCALL),
    METHOD(close, METH_NOARGS),
    METHOD(peers, METH_NOARGS),
    METHOD(check, METH_NOARGS),
    {0},
};

static PyType_Slot channel_slots[] = {
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, channel_init},
    {Py_tp_dealloc, channel_dealloc},
    {Py_tp_methods, channel_methods},
    {0, NULL},
};

static PyType_Spec channel_spec = {
    .name = "pycobre._native.shm.Channel",
    .basicsize = sizeof(Channel),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = channel_slots,
};

/* --- the module --- */

static PyObject *module_segment_bytes(PyObject *module, PyObject *args) {
    (void)module;
    unsigned size;
    unsigned long long capacity;
    if (!PyArg_ParseTuple(args, "IK", &size, &capacity))
        return NULL;
    return PyLong_FromSize_t(shm_segment_bytes(size, capacity));
}

static PyObject *module_format_segment(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer memory;
    unsigned size;
    unsigned long long capacity, start_time, pid_namespace;
    if (!PyArg_ParseTuple(args, "w*IKKK", &memory, &size, &capacity, &start_time, &pid_namespace))
        return NULL;
    bool fits =
        size >= 1 && size <= SHM_MAX_RANKS && capacity >= 64 && (size_t)memory.len == shm_segment_bytes(size, capacity);
    if (fits)
        shm_format(memory.buf, size, capacity, getpid(), start_time, pid_namespace);
    PyBuffer_Release(&memory);
    if (fits)
        Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, "the memory does not fit that many ranks and bytes");
    return NULL;
}

/* read_header(bytes) -> None when it is no segment, else (version, size, bytes, pid, start_time, pid_namespace). */
static PyObject *module_read_header(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer memory;
    shm_segment header;
    if (!PyArg_ParseTuple(args, "y*", &memory))
        return NULL;
    bool complete = (size_t)memory.len >= offsetof(shm_segment, abort);
    if (complete)
        memcpy(&header, memory.buf, offsetof(shm_segment, abort));
    PyBuffer_Release(&memory);
    if (!complete || memcmp(header.magic, SHM_MAGIC, sizeof header.magic) != 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(IIKiKK)", (unsigned)header.version, (unsigned)header.size, (unsigned long long)header.bytes,
                         (int)header.creator_pid, (unsigned long long)header.creator_start_time,
                         (unsigned long long)header.creator_pid_namespace);
}

static PyObject *module_dtype_tag(PyObject *module, PyObject *array) {
    (void)module;
    Py_buffer view;
    if (!take_buffer(array, 0, &view))
        return NULL;
    uint32_t tag = dtype_tag(&view);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(tag);
}

static PyMethodDef module_methods[] = {
    {"segment_bytes", module_segment_bytes, METH_VARARGS, NULL},
    {"format_segment", module_format_segment, METH_VARARGS, NULL},
    {"read_header", module_read_header, METH_VARARGS, NULL},
    {"dtype_tag", module_dtype_tag, METH_O, NULL},
    {0},
};

static int module_exec(PyObject *module) {
    static bool watching_forks = false;
    if (!ndarray_learn())
        return -1;
    if (!watching_forks && pthread_atfork(NULL, NULL, count_fork) != 0) {
        PyErr_SetString(PyExc_OSError, "cannot watch for forks");
        return -1;
    }
    watching_forks = true;
    /* These references are kept: the collectives compare with them. */
    channel_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &channel_spec, NULL);
    fast_path_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &fast_path_spec, NULL);
    if (channel_type == NULL || fast_path_type == NULL ||
        PyModule_AddObjectRef(module, "Channel", (PyObject *)channel_type) != 0 ||
        PyModule_AddObjectRef(module, "FastPathCollectives", (PyObject *)fast_path_type) != 0 ||
        PyModule_AddIntConstant(module, "VERSION", SHM_VERSION) != 0 ||
        PyModule_AddIntConstant(module, "MAX_RANKS", SHM_MAX_RANKS) != 0 ||
        PyModule_AddIntConstant(module, "HEADER_BYTES", offsetof(shm_segment, abort)) != 0)
        return -1;
    return 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pycobre._native.shm",
    .m_doc = "Ranks of one machine that talk through a mapped segment.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit_shm(void) {
    return PyModuleDef_Init(&module_definition);
}
