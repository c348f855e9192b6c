/* What both ends of the star share: blocks, failure, and waiting.
 *
 * The algorithm is that of pycobre.comm.tcp.star and tcp_collect, which explain it; this one does not sleep
 * while an answer may be microseconds away. Waiting spins, then yields, then polls; death, silence, signals
 * and the other ranks' timeouts are looked after only between polls, so they cost a prompt collective nothing.
 */
#ifndef PYCOBRE_TCP_STAR_H
#define PYCOBRE_TCP_STAR_H

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "shm_copy.h"
#include "tcp_wire.h"

#define TCP_CHUNK_BYTES (1 << 20)     /* of a block that is still coming in, at least so much is forwarded at once */
#define TCP_MAX_CHUNK_BYTES (1 << 22) /* and at most so much: a failure can only be told after a whole chunk */
#define TCP_WINDOW_BYTES (1 << 18)
#define TCP_COPY_BYTES (1 << 18)   /* copied in one go, so that the connections are never left for long */
#define TCP_STREAM_BYTES (1 << 22) /* copies from here on go past the caches, which they would only empty */
#define TCP_EAGER_TRIES 4          /* attempts before the first yield */
#define TCP_YIELD_NS 200000        /* of yielding before sleeping: waking a sleeper costs some 80 µs */
#define TCP_CROWDED_NS 500000      /* away for so long after a yield: others want this core too */
#define TCP_CROWDED_WAITS 100      /* that many waits are then spent asleep, */
#define TCP_ALERT_NS 5000          /* after so long, in which a peer that is running answers */
#define TCP_SLICE_MS 100
#define TCP_STOPPED_NS 500000000
#define TCP_SETTLE_NS 250000000

enum {
    TCP_OK = 0,
    TCP_DISCONNECTED = 1,
    TCP_FAILED = 2,
    TCP_CLOSED = 3,
    TCP_MISMATCH = 4,
    TCP_UNEXPECTED = 5,
    TCP_TIMEOUT = 6,
    TCP_INTERRUPTED = 7,
    TCP_UNAUTHENTIC = 8,
    TCP_RAISED = 9, /* a Python exception is set */
};

typedef struct {
    int kind;
    uint32_t rank;
    uint64_t number;
    size_t bytes;
    char data[TCP_TEXT_BYTES];
} tcp_failure;

typedef struct {
    char *data;
    uint64_t bytes;
    uint64_t ready; /* how much of it the coordinator has */
} tcp_block;

typedef struct tcp_leg tcp_leg;

typedef struct tcp_star {
    uint32_t rank, size, peers;
    tcp_stream *streams; /* a worker's: the coordinator; the coordinator's: ranks 1 to size - 1 */
    tcp_block *blocks;   /* of the present collective, one per rank or fewer */
    uint32_t nblocks;
    const char *own_from; /* this rank's own contribution, copied into its place while there is time */
    char *own_to;
    uint64_t own_left;
    bool own_streams; /* past the caches */
    char *packed;     /* TCP_SMALL_BYTES: small results, in rank order */
    struct pollfd *polls;
    tcp_leg *legs;  /* coordinator only */
    uint64_t *sent; /* coordinator only: bytes of each block sent to each worker */
    char *staged;   /* coordinator only: a window of every worker's contribution */
    int64_t timeout_ns;
    /* Called between polls; true to leave the collective with TCP_RAISED. */
    bool (*interrupted)(void *context);
    /* Folds `bytes` of `size` parts in rank order; false when it raised. */
    bool (*fold)(void *context, char *out, const char *const *parts, uint64_t bytes);
    void *context;
    const char **parts;
    atomic_bool stop;
    int64_t idle_ns;
    int64_t looked_ns, waited_ns; /* when this collective last looked at the clock, and how long it has waited */
    unsigned tries, crowded;
    bool sleepy;
    tcp_failure failure;
} tcp_star;

static inline int64_t tcp_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int tcp_fail(tcp_star *star, int status, uint32_t rank, uint64_t number) {
    star->failure.kind = status;
    star->failure.rank = rank;
    star->failure.number = number;
    star->failure.bytes = 0;
    return status;
}

static inline int tcp_disconnected(tcp_star *star, const tcp_stream *stream) {
    return tcp_fail(star, TCP_DISCONNECTED, stream->rank, (uint64_t)stream->error);
}

/* What reading a stream came to: its end, or a tag that is wrong. */
static inline int tcp_lost(tcp_star *star, const tcp_stream *stream, ssize_t code) {
    return code == TCP_FORGED ? tcp_fail(star, TCP_UNAUTHENTIC, stream->rank, 0) : tcp_disconnected(star, stream);
}

/* A frame that does not fit, with its header and, for a disagreement, ours. */
static inline int tcp_refuse(tcp_star *star, int status, const tcp_stream *stream, const tcp_header *theirs,
                             const tcp_header *ours) {
    tcp_fail(star, status, stream->rank, 0);
    memcpy(star->failure.data, theirs, sizeof *theirs);
    if (ours != NULL)
        memcpy(star->failure.data + sizeof *theirs, ours, sizeof *ours);
    star->failure.bytes = ours != NULL ? 2 * sizeof *theirs : sizeof *theirs;
    return status;
}

/* The failure that a FAILURE or SHUTDOWN frame is; TCP_OK for a frame of a collective. */
static inline int tcp_control(tcp_star *star, tcp_stream *stream, const tcp_header *header) {
    if (header->kind == TCP_SHUTDOWN)
        return tcp_fail(star, TCP_CLOSED, stream->rank, header->sequence);
    if (header->kind != TCP_FAILURE)
        return TCP_OK;
    if (header->length > TCP_TEXT_BYTES)
        return tcp_refuse(star, TCP_UNEXPECTED, stream, header, NULL);
    tcp_fail(star, TCP_FAILED, header->block, 0);
    stream->to = star->failure.data;
    stream->to_left = header->length;
    int64_t deadline = tcp_now_ns() + TCP_SETTLE_NS;
    while (tcp_filling(stream) && !stream->gone && tcp_now_ns() < deadline) {
        ssize_t moved = tcp_fill(stream);
        if (moved == TCP_FORGED)
            return tcp_fail(star, TCP_UNAUTHENTIC, stream->rank, 0);
        if (moved == 0) {
            struct pollfd one = {stream->fd, POLLIN, 0};
            poll(&one, 1, TCP_SLICE_MS);
        }
    }
    /* Whom a sealed header blames is certain; a text whose tag has not come is not. */
    bool whole = !stream->sealed || !tcp_filling(stream);
    star->failure.bytes = whole ? (size_t)(header->length - stream->to_left) : 0;
    stream->to_left = 0;
    return TCP_FAILED;
}

/* What a peer that disconnected between frames sent last; TCP_OK if it is still connected. A call it made before it
 * gave up is passed over. */
static inline int tcp_final_message(tcp_star *star, tcp_stream *stream) {
    tcp_header header;
    int found;
    while ((found = tcp_next_header(stream, true, &header)) > 0) {
        int status = tcp_control(star, stream, &header);
        if (status != TCP_OK)
            return status;
        while (stream->payload_left || tcp_filling(stream)) {
            uint64_t left = stream->payload_left;
            stream->to = star->failure.data;
            stream->to_left = left < TCP_TEXT_BYTES ? left : TCP_TEXT_BYTES;
            ssize_t moved = tcp_fill(stream);
            stream->to_left = 0;
            if (moved < 0)
                return tcp_lost(star, stream, moved);
            if (moved == 0 && stream->payload_left == left)
                return tcp_disconnected(star, stream); /* all it sent is here */
        }
    }
    return found < 0 ? tcp_lost(star, stream, found) : TCP_OK;
}

static inline void tcp_begin(tcp_star *star) {
    star->idle_ns = star->looked_ns = star->waited_ns = 0;
    star->tries = 0;
    for (uint32_t i = 0; i < star->peers; i++)
        star->streams[i].heard_ns = 0;
}

static inline void tcp_progressed(tcp_star *star) {
    star->idle_ns = 0;
    star->tries = 0;
}

/* Copies up to `limit` bytes of the own contribution; whether there were any. */
static inline bool tcp_copy_own(tcp_star *star, uint64_t limit) {
    uint64_t bytes = star->own_left < limit ? star->own_left : limit;
    if (bytes == 0)
        return false;
    if (star->own_streams)
        shm_stream(star->own_to, star->own_from, bytes);
    else
        memcpy(star->own_to, star->own_from, bytes);
    star->own_from += bytes;
    star->own_to += bytes;
    star->own_left -= bytes;
    return true;
}

static inline void tcp_copy_rest(tcp_star *star) {
    while (tcp_copy_own(star, TCP_COPY_BYTES))
        continue;
}

/* Does what work there is, else spins, then yields; true when it is time to sleep. On a crowded machine a yield
 * lasts somebody else's whole time slice, whereas a sleeper is run as soon as it is woken: then there is no
 * yielding for some time. */
static inline bool tcp_spin(tcp_star *star) {
    if (tcp_copy_own(star, TCP_COPY_BYTES))
        return false;
    if (++star->tries < TCP_EAGER_TRIES)
        return false;
    int64_t now = tcp_now_ns();
    if (star->idle_ns == 0) {
        star->idle_ns = now;
        star->sleepy = star->crowded > 0;
        if (star->sleepy)
            star->crowded--;
    }
    if (star->sleepy)
        return now - star->idle_ns >= TCP_ALERT_NS;
    if (now - star->idle_ns >= TCP_YIELD_NS)
        return true;
    sched_yield();
    if (tcp_now_ns() - now > TCP_CROWDED_NS) {
        star->crowded = TCP_CROWDED_WAITS;
        star->sleepy = true;
    }
    return false;
}

/* Counts the time waited. A sleep is a slice; if it took much longer, this process, and probably the whole job, was
 * stopped meanwhile, and does not count. */
static inline void tcp_look_at_clock(tcp_star *star) {
    int64_t now = tcp_now_ns(), passed = star->looked_ns ? now - star->looked_ns : 0;
    star->waited_ns += passed < TCP_STOPPED_NS ? passed : TCP_STOPPED_NS;
    star->looked_ns = now;
}

/* Whether nothing has been heard from a peer for the whole timeout. */
static inline bool tcp_is_silent(const tcp_star *star, tcp_stream *stream) {
    if (stream->moved)
        stream->heard_ns = star->waited_ns;
    stream->moved = false;
    return star->waited_ns - stream->heard_ns > star->timeout_ns;
}

/* Sleeps until one of `count` polls is ready, at most a slice. */
static inline int tcp_sleep(tcp_star *star, nfds_t count) {
    int64_t slice = star->timeout_ns / 20000000;
    int ready = poll(star->polls, count, slice < TCP_SLICE_MS ? (int)slice + 1 : TCP_SLICE_MS);
    if (ready < 0)
        for (nfds_t i = 0; i < count; i++)
            star->polls[i].revents = 0;
    if (atomic_load_explicit(&star->stop, memory_order_relaxed))
        return tcp_fail(star, TCP_INTERRUPTED, star->rank, 0);
    if (ready <= 0 && star->interrupted(star->context))
        return tcp_fail(star, TCP_RAISED, star->rank, 0);
    return TCP_OK;
}

/* Finishes frames that are half sent, so that the reason can follow them; streams that do not take them are
 * muted, for what came next would be read as their rest. */
static inline void tcp_settle(tcp_star *star, int64_t timeout_ns) {
    int64_t deadline = tcp_now_ns() + timeout_ns;
    for (;;) {
        nfds_t unsent = 0;
        for (uint32_t i = 0; i < star->peers; i++) {
            tcp_flush(&star->streams[i]);
            if (tcp_unsent(&star->streams[i]))
                star->polls[unsent++] = (struct pollfd){star->streams[i].fd, POLLOUT, 0};
        }
        int64_t left = deadline - tcp_now_ns();
        if (unsent == 0)
            return;
        if (left <= 0)
            break;
        poll(star->polls, unsent, (int)(left / 1000000) + 1);
    }
    for (uint32_t i = 0; i < star->peers; i++) {
        if (!tcp_unsent(&star->streams[i]))
            continue;
        tcp_silence(&star->streams[i]);
    }
}

/* --- a worker's collective --- */

/* Aims the stream at the next block that a RESULT fills. */
static inline void tcp_aim_next(tcp_star *star, tcp_stream *stream, uint32_t *next) {
    while (stream->to_left == 0 && *next < star->nblocks) {
        uint32_t block = (*next)++;
        if (block == star->rank)
            continue;
        stream->to = star->blocks[block].data;
        stream->to_left = star->blocks[block].bytes;
    }
}

/* Whether the frame is one that may come now; nothing is believed that this rank cannot verify. */
static inline bool tcp_fits(const tcp_star *star, const tcp_header *header, uint64_t left) {
    if (header->kind == TCP_RESULT)
        return header->length == left;
    if (header->kind != TCP_CHUNK && header->kind != TCP_LAST)
        return false;
    if (header->length > left || (header->kind == TCP_LAST && header->length != left))
        return false;
    if (header->length == 0)
        return header->kind == TCP_LAST; /* only an end may be empty */
    if (header->block >= star->nblocks || header->block == star->rank)
        return false;
    uint64_t bytes = star->blocks[header->block].bytes;
    return header->offset <= bytes && header->length <= bytes - header->offset;
}

static inline int tcp_work(tcp_star *star, const tcp_header *call, const void *mine) {
    tcp_stream *stream = star->streams;
    uint64_t left = 0;
    for (uint32_t r = 0; r < star->nblocks; r++)
        if (r != star->rank)
            left += star->blocks[r].bytes;
    bool greedy = left <= TCP_SMALL_BYTES, ended = false;
    uint32_t next = star->nblocks;
    tcp_begin(star);
    tcp_queue(stream, call);
    tcp_queue_piece(stream, mine, call->length);
    for (;;) {
        bool progress = tcp_flush(stream);
        if (tcp_filling(stream)) {
            uint64_t before = stream->payload_left;
            ssize_t moved = tcp_fill(stream);
            if (moved < 0)
                return tcp_lost(star, stream, moved);
            progress = progress || moved > 0 || stream->payload_left < before;
            tcp_aim_next(star, stream, &next);
        } else if (!ended) {
            tcp_header header;
            int found = tcp_next_header(stream, greedy, &header);
            if (found < 0)
                return tcp_lost(star, stream, found);
            if (found > 0) {
                tcp_progressed(star);
                if (header.kind == TCP_WAITING)
                    continue;
                int status = tcp_control(star, stream, &header);
                if (status != TCP_OK)
                    return status;
                if (!tcp_same_call(&header, call))
                    return tcp_refuse(star, TCP_MISMATCH, stream, &header, call);
                if (!tcp_fits(star, &header, left))
                    return tcp_refuse(star, TCP_UNEXPECTED, stream, &header, NULL);
                left -= header.length;
                ended = header.kind != TCP_CHUNK;
                if (header.kind == TCP_RESULT) {
                    next = 0;
                    tcp_aim_next(star, stream, &next);
                } else if (header.length) {
                    stream->to = star->blocks[header.block].data + header.offset;
                    stream->to_left = header.length;
                }
                continue;
            }
        }
        if (ended && !tcp_filling(stream) && !tcp_unsent(stream)) {
            if (stream->mute)
                return tcp_final_message(star, stream);
            tcp_copy_rest(star);
            return TCP_OK;
        }
        if (progress) {
            tcp_progressed(star);
            continue;
        }
        if (!tcp_spin(star))
            continue;
        tcp_look_at_clock(star);
        if (tcp_is_silent(star, stream))
            return tcp_fail(star, TCP_TIMEOUT, stream->rank, 0);
        short events = (ended && !tcp_filling(stream) ? 0 : POLLIN) | (tcp_unsent(stream) ? POLLOUT : 0);
        star->polls[0] = (struct pollfd){stream->fd, (short)(events | POLLRDHUP), 0};
        int status = tcp_sleep(star, 1);
        if (status != TCP_OK)
            return status;
    }
}

#endif
