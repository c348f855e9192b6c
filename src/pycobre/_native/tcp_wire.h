/* Frames, as pycobre.comm.tcp.wire describes them, and one connection that reads and writes them without blocking. */
#ifndef PYCOBRE_TCP_WIRE_H
#define PYCOBRE_TCP_WIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "frames are little-endian: the Python engine serves this machine"
#endif

enum { TCP_CALL = 1, TCP_RESULT, TCP_CHUNK, TCP_LAST, TCP_WAITING, TCP_FAILURE, TCP_SHUTDOWN };
enum { TCP_ALLGATHERV = 1, TCP_ALLREDUCE, TCP_BROADCAST, TCP_BARRIER };

typedef struct {
    uint8_t kind;
    uint8_t operation, letter, reduce;
    uint32_t itemsize, root, fields;
    uint64_t sequence, elements, layout;
    uint32_t block, reserved;
    uint64_t offset, length;
} tcp_header;

_Static_assert(sizeof(tcp_header) == 64, "a header is 64 bytes");

/* The call is bytes 1 to 39. */
static inline bool tcp_same_call(const tcp_header *a, const tcp_header *b) {
    return memcmp((const char *)a + 1, (const char *)b + 1, 39) == 0;
}

#define TCP_SMALL_BYTES 65536 /* up to here a collective is one frame up and one down */
#define TCP_TEXT_BYTES 4096

typedef struct {
    int fd;
    uint32_t rank;
    /* In: bytes read ahead, and where the payload of the present frame goes. */
    char *buffer; /* of TCP_SMALL_BYTES */
    size_t start, end;
    char *to;
    uint64_t to_left;
    /* Out: at most one frame, a header and up to three pieces of memory. */
    tcp_header head;
    struct iovec out[4];
    int out_first, out_count;
    bool mute; /* a write failed: nothing more goes out, what the peer said last is still to be read */
    bool gone; /* reading ended, with `error`, 0 for an orderly end */
    int error;
    bool moved; /* bytes went either way since `heard_ns`, in time waited by the present collective */
    int64_t heard_ns;
} tcp_stream;

/* Bytes read, 0 when there are none now, -1 when the connection has ended. */
static inline ssize_t tcp_receive(tcp_stream *stream, void *to, size_t limit) {
    ssize_t got = recv(stream->fd, to, limit, MSG_DONTWAIT);
    if (got > 0) {
        stream->moved = true;
        return got;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    stream->gone = true;
    stream->error = got < 0 ? errno : 0;
    return -1;
}

/* 1 with the next header once all of it has arrived, else 0, -1 when the connection has ended. Greedy reading
 * takes what follows too; otherwise not a byte of the payload is read, so that it need not be copied. */
static inline int tcp_next_header(tcp_stream *stream, bool greedy, tcp_header *header) {
    if (stream->end - stream->start < sizeof *header) {
        size_t held = stream->end - stream->start;
        if (held && stream->start)
            memmove(stream->buffer, stream->buffer + stream->start, held);
        stream->start = 0;
        stream->end = held;
        size_t limit = greedy ? TCP_SMALL_BYTES - held : sizeof *header - held;
        ssize_t got = tcp_receive(stream, stream->buffer + held, limit);
        if (got <= 0)
            return (int)got;
        stream->end += (size_t)got;
        if (stream->end < sizeof *header)
            return 0;
    }
    memcpy(header, stream->buffer + stream->start, sizeof *header);
    stream->start += sizeof *header;
    return 1;
}

/* Moves what has arrived of the payload to where it belongs; the number of bytes, or -1. */
static inline ssize_t tcp_fill(tcp_stream *stream) {
    size_t held = stream->end - stream->start;
    ssize_t got;
    if (held) {
        if (held > stream->to_left)
            held = (size_t)stream->to_left;
        memcpy(stream->to, stream->buffer + stream->start, held);
        stream->start += held;
        stream->moved = true;
        got = (ssize_t)held;
    } else {
        got = tcp_receive(stream, stream->to, stream->to_left);
        if (got <= 0)
            return got;
    }
    stream->to += got;
    stream->to_left -= (uint64_t)got;
    return got;
}

static inline bool tcp_unsent(const tcp_stream *stream) {
    return stream->out_first < stream->out_count;
}

/* Takes the header of a frame for sending; the frame before must have gone. Its payload follows in pieces. */
static inline void tcp_queue(tcp_stream *stream, const tcp_header *head) {
    stream->head = *head;
    stream->out_first = stream->out_count = 0;
    if (!stream->mute)
        stream->out[stream->out_count++] = (struct iovec){&stream->head, sizeof stream->head};
}

static inline void tcp_queue_piece(tcp_stream *stream, const void *data, size_t bytes) {
    if (bytes && !stream->mute)
        stream->out[stream->out_count++] = (struct iovec){(void *)data, bytes};
}

/* Sends what the connection takes now; whether anything went. */
static inline bool tcp_flush(tcp_stream *stream) {
    bool any = false;
    while (tcp_unsent(stream)) {
        struct msghdr message = {0};
        message.msg_iov = stream->out + stream->out_first;
        message.msg_iovlen = (size_t)(stream->out_count - stream->out_first);
        ssize_t sent = sendmsg(stream->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                stream->mute = true;
                stream->out_first = stream->out_count = 0;
            }
            break;
        }
        any = stream->moved = true;
        while (sent > 0) {
            struct iovec *piece = &stream->out[stream->out_first];
            size_t step = (size_t)sent < piece->iov_len ? (size_t)sent : piece->iov_len;
            piece->iov_base = (char *)piece->iov_base + step;
            piece->iov_len -= step;
            sent -= (ssize_t)step;
            if (piece->iov_len == 0)
                stream->out_first++;
        }
    }
    return any;
}

#endif
