/* pycobre._native.tcp: the star's collectives, as Python sees them.
 *
 * Only translation lives here: buffers in, failure out, and the GIL given up around everything that waits or
 * moves bytes. Frames and connections are in tcp_wire.h, their tags in tcp_mac.h, waiting and a worker's end in tcp_star.h, the
 * coordinator's end in tcp_collect.h. Sockets belong to Python: this module is given their descriptors.
 *
 * A collective returns None when it completed and otherwise a tuple that pycobre.comm.tcp.failure explains.
 */
#include "ndarray.h"

#include <stdlib.h>

#include "shm_fold.h"
#include "tcp_collect.h"

typedef struct {
    PyObject_HEAD
    tcp_star star;
    PyObject *fold;         /* for dtypes that have no native kernel */
    PyThreadState *waiting; /* the state given up by the thread that is inside a collective */
    shm_fold kernel;
    tcp_header call;
} Star;

/* --- what the star calls back --- */

static bool on_slice(void *context) {
    Star *self = context;
    PyEval_RestoreThread(self->waiting);
    bool leave = PyErr_CheckSignals() != 0;
    self->waiting = PyEval_SaveThread();
    return leave;
}

static bool fold_in_python(Star *self, char *out, const char *const *parts, uint64_t bytes) {
    PyEval_RestoreThread(self->waiting);
    PyObject *result = NULL, *views = PyList_New(0);
    bool complete = views != NULL;
    for (uint32_t r = 0; complete && r < self->star.size; r++) {
        PyObject *view = PyMemoryView_FromMemory((char *)parts[r], (Py_ssize_t)bytes, PyBUF_READ);
        complete = view != NULL && PyList_Append(views, view) == 0;
        Py_XDECREF(view);
    }
    if (complete) {
        PyObject *target = PyMemoryView_FromMemory(out, (Py_ssize_t)bytes, PyBUF_WRITE);
        if (target != NULL)
            result = PyObject_CallFunction(self->fold, "iIiNO", (int)self->call.letter, (unsigned)self->call.itemsize,
                                           (int)self->call.reduce, target, views);
    }
    Py_XDECREF(views);
    Py_XDECREF(result);
    self->waiting = PyEval_SaveThread();
    return result != NULL;
}

static bool on_fold(void *context, char *out, const char *const *parts, uint64_t bytes) {
    Star *self = context;
    if (self->kernel == NULL)
        return fold_in_python(self, out, parts, bytes);
    if (out != parts[0])
        memcpy(out, parts[0], bytes);
    for (uint32_t r = 1; r < self->star.size; r++)
        self->kernel(out, parts[r], bytes / self->call.itemsize);
    return true;
}

/* --- entering and leaving a collective --- */

static PyObject *describe(const tcp_star *star, int status) {
    if (status == TCP_OK)
        Py_RETURN_NONE;
    if (status == TCP_RAISED)
        return NULL;
    const tcp_failure *failure = &star->failure;
    return Py_BuildValue("(iIKy#)", failure->kind, (unsigned)failure->rank, (unsigned long long)failure->number,
                         failure->data, (Py_ssize_t)failure->bytes);
}

/* Runs the collective `self->call`, whose blocks are set, without the GIL. */
static int run(Star *self, const char *mine, bool folds) {
    tcp_star *star = &self->star;
    self->waiting = PyEval_SaveThread();
    int status =
        star->rank == 0 ? tcp_coordinate(star, &self->call, folds ? mine : NULL) : tcp_work(star, &self->call, mine);
    /* The arrays are the caller's again when we return: nothing may be left that points into them. */
    if (status != TCP_OK) {
        tcp_settle(star, TCP_SETTLE_NS);
        for (uint32_t i = 0; i < star->peers; i++)
            star->streams[i].to_left = star->streams[i].tag_left = 0;
    }
    PyEval_RestoreThread(self->waiting);
    return status;
}

/* Starts the description of a collective. */
static void announce(Star *self, int operation, uint64_t sequence, uint64_t elements) {
    memset(&self->call, 0, sizeof self->call);
    self->call.kind = TCP_CALL;
    self->call.operation = (uint8_t)operation;
    self->call.sequence = sequence;
    self->call.elements = elements;
    self->call.block = self->star.rank;
    self->star.own_left = 0;
    self->star.nblocks = self->star.size;
}

static void empty_blocks(tcp_star *star) {
    for (uint32_t r = 0; r < star->size; r++)
        star->blocks[r] = (tcp_block){0};
}

/* --- arguments --- */

static bool expect(const char *name, Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted)
        return true;
    PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", name, wanted, given);
    return false;
}

static bool take_buffer(PyObject *object, int flags, Py_buffer *view) {
    return ndarray_look(object, flags == PyBUF_WRITABLE, view) || PyObject_GetBuffer(object, view, flags) == 0;
}

static bool take_number(PyObject *object, uint64_t *value) {
    *value = PyLong_AsUnsignedLongLong(object);
    return *value != UINT64_MAX || !PyErr_Occurred();
}

/* The three numbers that describe a dtype. */
static bool take_code(Star *self, PyObject *code) {
    uint64_t fields[3];
    for (int i = 0; i < 3; i++) {
        PyObject *item = PyTuple_GetItem(code, i);
        if (item == NULL || !take_number(item, &fields[i]))
            return false;
    }
    if (fields[1] == 0) {
        PyErr_SetString(PyExc_ValueError, "the dtype has no size");
        return false;
    }
    self->call.letter = (uint8_t)fields[0];
    self->call.itemsize = (uint32_t)fields[1];
    self->call.fields = (uint32_t)fields[2];
    return true;
}

/* The ranges that counts and displs describe, checked against the memory once more: C has no second chance. */
static bool take_blocks(Star *self, const Py_buffer *recv, PyObject *counts, PyObject *displs) {
    tcp_star *star = &self->star;
    uint64_t width = self->call.itemsize, room = (uint64_t)recv->len / width;
    if (PyTuple_Size(counts) != (Py_ssize_t)star->size || PyTuple_Size(displs) != (Py_ssize_t)star->size) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "expected one count and one displacement per rank");
        return false;
    }
    for (uint32_t r = 0; r < star->size; r++) {
        uint64_t count, displ;
        if (!take_number(PyTuple_GetItem(counts, r), &count) || !take_number(PyTuple_GetItem(displs, r), &displ))
            return false;
        if (displ > room || count > room - displ) {
            PyErr_SetString(PyExc_ValueError, "a range lies outside of the array");
            return false;
        }
        star->blocks[r] = (tcp_block){(char *)recv->buf + displ * width, count * width, 0};
        self->call.elements += count;
    }
    return true;
}

/* --- the collectives --- */

static PyObject *star_allgatherv(Star *self, PyObject *const *args, Py_ssize_t nargs) {
    tcp_star *star = &self->star;
    Py_buffer send, recv;
    uint64_t sequence, layout;
    if (!expect("allgatherv", nargs, 7) || !take_number(args[0], &sequence) || !take_number(args[2], &layout))
        return NULL;
    if (!take_buffer(args[3], PyBUF_SIMPLE, &send))
        return NULL;
    if (!take_buffer(args[4], PyBUF_WRITABLE, &recv)) {
        PyBuffer_Release(&send);
        return NULL;
    }
    PyObject *result = NULL;
    announce(self, TCP_ALLGATHERV, sequence, 0);
    self->call.layout = layout;
    if (take_code(self, args[1]) && take_blocks(self, &recv, args[5], args[6])) {
        tcp_block *own = &star->blocks[star->rank];
        if (own->bytes != (uint64_t)send.len) {
            PyErr_SetString(PyExc_ValueError, "the own count and the own array differ");
        } else {
            self->call.length = own->bytes;
            self->call.offset = own->bytes / self->call.itemsize;
            star->own_to = own->data;
            star->own_left = own->bytes;
            star->own_streams = own->bytes >= TCP_STREAM_BYTES;
            star->own_from = own->data = send.buf;
            result = describe(star, run(self, send.buf, false));
        }
    }
    PyBuffer_Release(&recv);
    PyBuffer_Release(&send);
    return result;
}

/* Gathers all contributions, then folds them here. */
static int gather_and_fold(Star *self, const Py_buffer *send, const Py_buffer *recv) {
    tcp_star *star = &self->star;
    uint64_t bytes = (uint64_t)send->len;
    for (uint32_t r = 0; r < star->size; r++) {
        char *data = r == star->rank ? send->buf : star->packed + r * bytes;
        star->blocks[r] = (tcp_block){data, bytes, 0};
        star->parts[r] = data;
    }
    int status = run(self, send->buf, false);
    if (status != TCP_OK)
        return status;
    self->waiting = PyEval_SaveThread();
    bool folded = on_fold(self, recv->buf, star->parts, bytes);
    PyEval_RestoreThread(self->waiting);
    return folded ? TCP_OK : TCP_RAISED;
}

static PyObject *star_allreduce(Star *self, PyObject *const *args, Py_ssize_t nargs) {
    tcp_star *star = &self->star;
    Py_buffer send, recv;
    uint64_t sequence, reduce;
    if (!expect("allreduce", nargs, 5) || !take_number(args[0], &sequence) || !take_number(args[4], &reduce))
        return NULL;
    if (!take_buffer(args[2], PyBUF_SIMPLE, &send))
        return NULL;
    if (!take_buffer(args[3], PyBUF_WRITABLE, &recv)) {
        PyBuffer_Release(&send);
        return NULL;
    }
    PyObject *result = NULL;
    announce(self, TCP_ALLREDUCE, sequence, 0);
    if (send.len != recv.len) {
        PyErr_SetString(PyExc_ValueError, "expected two arrays of one size");
    } else if (take_code(self, args[1])) {
        uint64_t bytes = (uint64_t)send.len;
        self->call.reduce = (uint8_t)reduce;
        self->call.length = bytes;
        self->call.elements = self->call.offset = bytes / self->call.itemsize;
        self->kernel = shm_fold_for((char)self->call.letter, self->call.itemsize, (int)reduce);
        int status;
        if (bytes <= TCP_SMALL_BYTES / star->size) {
            status = gather_and_fold(self, &send, &recv);
        } else {
            star->blocks[0] = (tcp_block){recv.buf, bytes, 0};
            star->nblocks = 1;
            status = run(self, send.buf, true);
        }
        result = describe(star, status);
    }
    PyBuffer_Release(&recv);
    PyBuffer_Release(&send);
    return result;
}

static PyObject *star_broadcast(Star *self, PyObject *const *args, Py_ssize_t nargs) {
    tcp_star *star = &self->star;
    Py_buffer buf;
    uint64_t sequence, root;
    if (!expect("broadcast", nargs, 4) || !take_number(args[0], &sequence) || !take_number(args[3], &root))
        return NULL;
    if (root >= star->size) {
        PyErr_SetString(PyExc_ValueError, "the root is not a rank");
        return NULL;
    }
    bool is_root = root == star->rank;
    if (!take_buffer(args[2], is_root ? PyBUF_SIMPLE : PyBUF_WRITABLE, &buf))
        return NULL;
    PyObject *result = NULL;
    announce(self, TCP_BROADCAST, sequence, 0);
    if (take_code(self, args[1])) {
        self->call.root = (uint32_t)root;
        self->call.length = is_root ? (uint64_t)buf.len : 0;
        self->call.elements = (uint64_t)buf.len / self->call.itemsize;
        empty_blocks(star);
        star->blocks[root] = (tcp_block){buf.buf, (uint64_t)buf.len, 0};
        result = describe(star, run(self, buf.buf, false));
    }
    PyBuffer_Release(&buf);
    return result;
}

static PyObject *star_barrier(Star *self, PyObject *argument) {
    uint64_t sequence;
    if (!take_number(argument, &sequence))
        return NULL;
    announce(self, TCP_BARRIER, sequence, 0);
    empty_blocks(&self->star);
    return describe(&self->star, run(self, NULL, false));
}

/* --- besides collectives --- */

static tcp_stream *find_stream(Star *self, PyObject *rank) {
    uint64_t number;
    if (!take_number(rank, &number))
        return NULL;
    for (uint32_t i = 0; i < self->star.peers; i++)
        if (self->star.streams[i].rank == number)
            return &self->star.streams[i];
    PyErr_SetString(PyExc_ValueError, "there is no connection to that rank");
    return NULL;
}

static PyObject *star_tell(Star *self, PyObject *const *args, Py_ssize_t nargs) {
    if (!expect("tell", nargs, 3))
        return NULL;
    tcp_stream *stream = find_stream(self, args[0]);
    double timeout_s = PyFloat_AsDouble(args[2]);
    Py_buffer frame;
    if (stream == NULL || (timeout_s == -1.0 && PyErr_Occurred()))
        return NULL;
    if (PyObject_GetBuffer(args[1], &frame, PyBUF_SIMPLE) < 0)
        return NULL;
    bool whole = (size_t)frame.len >= sizeof(tcp_header);
    if (whole) {
        self->waiting = PyEval_SaveThread();
        tcp_queue(stream, frame.buf);
        tcp_queue_piece(stream, (char *)frame.buf + sizeof(tcp_header), (size_t)frame.len - sizeof(tcp_header));
        tcp_settle(&self->star, (int64_t)(timeout_s * 1e9));
        PyEval_RestoreThread(self->waiting);
    }
    PyBuffer_Release(&frame);
    return PyBool_FromLong(whole && !stream->mute);
}

static PyObject *star_inspect(Star *self, PyObject *argument) {
    tcp_stream *stream = find_stream(self, argument);
    if (stream == NULL)
        return NULL;
    return describe(&self->star, tcp_final_message(&self->star, stream));
}

static PyObject *star_interrupt(Star *self, PyObject *unused) {
    (void)unused;
    atomic_store(&self->star.stop, true);
    Py_RETURN_NONE;
}

/* --- life and death --- */

static void star_free(tcp_star *star) {
    for (uint32_t i = 0; star->streams != NULL && i < star->peers; i++)
        free(star->streams[i].buffer);
    free(star->streams), free(star->blocks), free(star->packed), free(star->polls);
    free(star->legs), free(star->sent), free(star->staged), free(star->parts);
}

static bool star_allocate(tcp_star *star) {
    size_t peers = star->peers, size = star->size;
    star->streams = calloc(peers, sizeof *star->streams);
    star->blocks = calloc(size, sizeof *star->blocks);
    star->packed = malloc(TCP_SMALL_BYTES);
    star->polls = calloc(peers, sizeof *star->polls);
    star->parts = calloc(size, sizeof *star->parts);
    bool complete = star->streams && star->blocks && star->packed && star->polls && star->parts;
    if (complete && star->rank == 0) {
        star->legs = calloc(peers, sizeof *star->legs);
        star->sent = calloc(peers * size, sizeof *star->sent);
        star->staged = malloc(peers * TCP_WINDOW_BYTES);
        complete = star->legs && star->sent && star->staged;
    }
    for (size_t i = 0; complete && i < peers; i++)
        complete = (star->streams[i].buffer = malloc(TCP_SMALL_BYTES)) != NULL;
    if (!complete)
        PyErr_NoMemory();
    return complete;
}

/* The keys of one connection: None, or those of what is received and of what is sent. */
static bool take_keys(tcp_stream *stream, PyObject *keys) {
    const char *in, *out;
    Py_ssize_t in_bytes, out_bytes;
    if (keys == Py_None)
        return true;
    if (!PyArg_ParseTuple(keys, "y#y#", &in, &in_bytes, &out, &out_bytes))
        return false;
    if (in_bytes != TCP_KEY_BYTES || out_bytes != TCP_KEY_BYTES) {
        PyErr_SetString(PyExc_ValueError, "expected keys of 48 bytes");
        return false;
    }
    tcp_mac_start(&stream->mac_in, (const uint8_t *)in);
    tcp_mac_start(&stream->mac_out, (const uint8_t *)out);
    stream->sealed = true;
    return true;
}

static int star_init(Star *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"rank", "size", "descriptors", "keys", "timeout_s", "fold", NULL};
    unsigned rank, size;
    double timeout_s;
    PyObject *descriptors, *keys, *fold;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "IIO!O!dO", names, &rank, &size, &PyTuple_Type, &descriptors,
                                     &PyTuple_Type, &keys, &timeout_s, &fold))
        return -1;
    tcp_star *star = &self->star;
    uint32_t peers = rank == 0 ? size - 1 : 1;
    if (star->streams != NULL || size < 2 || rank >= size || PyTuple_Size(descriptors) != (Py_ssize_t)peers ||
        PyTuple_Size(keys) != (Py_ssize_t)peers) {
        PyErr_SetString(PyExc_ValueError, "expected one descriptor and one entry of keys per peer, once");
        return -1;
    }
    star->rank = rank;
    star->size = size;
    star->peers = peers;
    star->timeout_ns = (int64_t)(timeout_s < 1e9 ? timeout_s * 1e9 : 1e18);
    star->interrupted = on_slice;
    star->fold = on_fold;
    star->context = self;
    self->fold = Py_NewRef(fold);
    if (!star_allocate(star))
        return -1;
    for (uint32_t i = 0; i < peers; i++) {
        long descriptor = PyLong_AsLong(PyTuple_GetItem(descriptors, i));
        if (descriptor == -1 && PyErr_Occurred())
            return -1;
        star->streams[i].fd = (int)descriptor;
        star->streams[i].rank = rank == 0 ? i + 1 : 0;
        if (!take_keys(&star->streams[i], PyTuple_GetItem(keys, i)))
            return -1;
    }
    return 0;
}

static void star_dealloc(Star *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    star_free(&self->star);
    Py_XDECREF(self->fold);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef star_methods[] = {
    {"allgatherv", (PyCFunction)(void (*)(void))star_allgatherv, METH_FASTCALL, NULL},
    {"allreduce", (PyCFunction)(void (*)(void))star_allreduce, METH_FASTCALL, NULL},
    {"broadcast", (PyCFunction)(void (*)(void))star_broadcast, METH_FASTCALL, NULL},
    {"barrier", (PyCFunction)star_barrier, METH_O, NULL},
    {"tell", (PyCFunction)(void (*)(void))star_tell, METH_FASTCALL, NULL},
    {"inspect", (PyCFunction)star_inspect, METH_O, NULL},
    {"interrupt", (PyCFunction)star_interrupt, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot star_slots[] = {
    {Py_tp_doc, "One rank's connections and the collectives over them."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, star_init},
    {Py_tp_dealloc, star_dealloc},
    {Py_tp_methods, star_methods},
    {0, NULL},
};

static PyType_Spec star_spec = {
    .name = "pycobre._native.tcp.Star",
    .basicsize = sizeof(Star),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = star_slots,
};

/* The tags of some messages under one key, for the tests that compare them with other implementations. */
static PyObject *tags(PyObject *module, PyObject *args) {
    (void)module;
    const char *key;
    Py_ssize_t key_bytes;
    PyObject *messages;
    if (!PyArg_ParseTuple(args, "y#O!", &key, &key_bytes, &PyTuple_Type, &messages))
        return NULL;
    if (key_bytes != TCP_KEY_BYTES) {
        PyErr_SetString(PyExc_ValueError, "expected a key of 48 bytes");
        return NULL;
    }
    tcp_mac mac;
    tcp_mac_start(&mac, (const uint8_t *)key);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < PyTuple_Size(messages); i++) {
        Py_buffer message;
        PyObject *tag = NULL;
        if (PyObject_GetBuffer(PyTuple_GetItem(messages, i), &message, PyBUF_SIMPLE) == 0) {
            uint8_t bytes[TCP_TAG_BYTES];
            tcp_mac_add(&mac, message.buf, (size_t)message.len);
            tcp_mac_finish(&mac, bytes);
            PyBuffer_Release(&message);
            tag = PyBytes_FromStringAndSize((const char *)bytes, TCP_TAG_BYTES);
        }
        if (tag == NULL || PyList_Append(found, tag) < 0)
            Py_CLEAR(found);
        Py_XDECREF(tag);
    }
    return found;
}

static PyMethodDef functions[] = {{"tags", tags, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static int add_types(PyObject *module) {
    if (!ndarray_learn())
        return -1;
    PyObject *type = PyType_FromModuleAndSpec(module, &star_spec, NULL);
    if (type == NULL)
        return -1;
    int status = PyModule_AddObjectRef(module, "Star", type);
    Py_DECREF(type);
    return status;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, add_types}, {0, NULL}};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,  .m_name = "pycobre._native.tcp", .m_doc = "The collectives of the tcp backend.",
    .m_methods = functions, .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit_tcp(void) {
    return PyModuleDef_Init(&module);
}
