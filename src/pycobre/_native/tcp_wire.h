/* Frames, as pycobre.comm.tcp.wire describes them, and one connection that reads and writes them without blocking.
 *
 * On a sealed connection (pycobre.comm.tcp.sealed) a tag follows each header and each segment of a payload. A header is
 * returned, and bytes of a payload are counted as received, only after their tag was verified.
 */
#ifndef PYCOBRE_TCP_WIRE_H
#define PYCOBRE_TCP_WIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tcp_mac.h"

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
#define TCP_SEGMENT_BYTES (1 << 18) /* of a sealed payload: so much, or the rest, has a tag of its own */

enum { TCP_ENDED = -1, TCP_FORGED = -2 };

typedef struct {
    int fd;
    uint32_t rank;
    /* In: bytes read ahead, and where the payload of the present frame goes. */
    char *buffer; /* of TCP_SMALL_BYTES */
    size_t start, end;
    char *to;
    uint64_t to_left;
    uint64_t payload_left; /* of the present frame, not received */
    /* Out: at most one frame. What the kernel gets next, and, if sealed, what of the payload has no tag yet. */
    struct {
        tcp_header head;
        uint8_t tag[TCP_TAG_BYTES];
    } first;
    struct iovec out[5];
    int out_first, out_count;
    struct iovec unsealed[3];
    int unsealed_first, unsealed_count;
    bool mute; /* a write failed: nothing more goes out, what the peer sent last is still to be read */
    bool gone; /* reading ended, with `error`, 0 for an orderly end */
    int error;
    bool moved; /* bytes went either way since `heard_ns`, in time waited by the present collective */
    int64_t heard_ns;
    /* Authentication, per direction. */
    bool sealed;
    tcp_mac mac_in, mac_out;
    uint64_t segment; /* bytes of the segment under way that have been received */
    size_t tag_left;  /* bytes of its tag that are still to come, once the segment is complete */
    uint8_t tag_in[TCP_TAG_BYTES], tag_out[TCP_TAG_BYTES];
} tcp_stream;

/* Bytes read, 0 when there are none now, TCP_ENDED when the connection has ended. */
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
    return TCP_ENDED;
}

/* 1 with the next header once all of it has arrived, else 0, TCP_ENDED when the connection has ended, TCP_FORGED when
 * its tag is wrong. Greedy reading takes what follows too; otherwise not a byte of the payload is read, so that it
 * need not be copied. */
static inline int tcp_next_header(tcp_stream *stream, bool greedy, tcp_header *header) {
    size_t needed = sizeof *header + (stream->sealed ? TCP_TAG_BYTES : 0);
    if (stream->end - stream->start < needed) {
        size_t held = stream->end - stream->start;
        if (held && stream->start)
            memmove(stream->buffer, stream->buffer + stream->start, held);
        stream->start = 0;
        stream->end = held;
        size_t limit = greedy ? TCP_SMALL_BYTES - held : needed - held;
        ssize_t got = tcp_receive(stream, stream->buffer + held, limit);
        if (got <= 0)
            return (int)got;
        stream->end += (size_t)got;
        if (stream->end < needed)
            return 0;
    }
    const char *from = stream->buffer + stream->start;
    memcpy(header, from, sizeof *header);
    if (stream->sealed) {
        tcp_mac_add(&stream->mac_in, from, sizeof *header);
        if (!tcp_mac_verify(&stream->mac_in, (const uint8_t *)from + sizeof *header))
            return TCP_FORGED;
    }
    stream->start += needed;
    stream->payload_left = header->length;
    return 1;
}

/* Takes up to `limit` bytes from what was read ahead, else from the connection. */
static inline ssize_t tcp_take_bytes(tcp_stream *stream, void *to, size_t limit) {
    size_t held = stream->end - stream->start;
    if (held == 0)
        return tcp_receive(stream, to, limit);
    if (held > limit)
        held = limit;
    memcpy(to, stream->buffer + stream->start, held);
    stream->start += held;
    stream->moved = true;
    return (ssize_t)held;
}

/* The bytes of the segment under way, once its tag has arrived and is right; 0 while more of the tag is to come. */
static inline ssize_t tcp_fill_tag(tcp_stream *stream) {
    while (stream->tag_left) {
        ssize_t got = tcp_take_bytes(stream, stream->tag_in + TCP_TAG_BYTES - stream->tag_left, stream->tag_left);
        if (got <= 0)
            return got;
        stream->tag_left -= (size_t)got;
    }
    ssize_t verified = (ssize_t)stream->segment;
    stream->segment = 0;
    return tcp_mac_verify(&stream->mac_in, stream->tag_in) ? verified : TCP_FORGED;
}

/* Whether bytes of a payload, or the tag that makes them count, are still to come before the target is filled. */
static inline bool tcp_filling(const tcp_stream *stream) {
    return stream->to_left || stream->tag_left;
}

/* Moves what has arrived of the payload to where it belongs. Returns the number of bytes that count now: all of them
 * or, if sealed, those of a segment whose tag is right; 0 if nothing more can be done now, TCP_ENDED, TCP_FORGED. */
static inline ssize_t tcp_fill(tcp_stream *stream) {
    while (stream->to_left) {
        if (stream->tag_left)
            return tcp_fill_tag(stream);
        uint64_t limit = stream->to_left;
        if (stream->sealed && limit > TCP_SEGMENT_BYTES - stream->segment)
            limit = TCP_SEGMENT_BYTES - stream->segment;
        ssize_t got = tcp_take_bytes(stream, stream->to, limit);
        if (got <= 0)
            return got;
        if (stream->sealed)
            tcp_mac_add(&stream->mac_in, stream->to, (size_t)got);
        stream->to += got;
        stream->to_left -= (uint64_t)got;
        stream->payload_left -= (uint64_t)got;
        if (!stream->sealed)
            return got;
        stream->segment += (uint64_t)got;
        if (stream->segment == TCP_SEGMENT_BYTES || stream->payload_left == 0)
            stream->tag_left = TCP_TAG_BYTES;
    }
    return stream->tag_left ? tcp_fill_tag(stream) : 0;
}

static inline bool tcp_unsent(const tcp_stream *stream) {
    return stream->out_first < stream->out_count || stream->unsealed_first < stream->unsealed_count;
}

/* Forgets what has not been sent. */
static inline void tcp_silence(tcp_stream *stream) {
    stream->mute = true;
    stream->out_first = stream->out_count = stream->unsealed_first = stream->unsealed_count = 0;
}

/* Takes the header of a frame for sending; the frame before must have gone. Its payload follows in pieces. */
static inline void tcp_queue(tcp_stream *stream, const tcp_header *head) {
    stream->first.head = *head;
    stream->out_first = stream->out_count = stream->unsealed_first = stream->unsealed_count = 0;
    if (stream->mute)
        return;
    size_t bytes = sizeof stream->first.head;
    if (stream->sealed) {
        tcp_mac_add(&stream->mac_out, head, sizeof *head);
        tcp_mac_finish(&stream->mac_out, stream->first.tag);
        bytes += TCP_TAG_BYTES;
    }
    stream->out[stream->out_count++] = (struct iovec){&stream->first, bytes};
}

static inline void tcp_queue_piece(tcp_stream *stream, const void *data, size_t bytes) {
    if (!bytes || stream->mute)
        return;
    struct iovec piece = {(void *)data, bytes};
    if (stream->sealed)
        stream->unsealed[stream->unsealed_count++] = piece;
    else
        stream->out[stream->out_count++] = piece;
}

/* Makes the tag of the next segment and lets both go to the kernel. Done segment by segment, so that what was just
 * read for the tag is still in the cache when it is copied to the kernel. */
static inline void tcp_seal_segment(tcp_stream *stream) {
    size_t left = TCP_SEGMENT_BYTES;
    while (left && stream->unsealed_first < stream->unsealed_count) {
        struct iovec *piece = &stream->unsealed[stream->unsealed_first];
        size_t step = piece->iov_len < left ? piece->iov_len : left;
        tcp_mac_add(&stream->mac_out, piece->iov_base, step);
        stream->out[stream->out_count++] = (struct iovec){piece->iov_base, step};
        piece->iov_base = (char *)piece->iov_base + step;
        piece->iov_len -= step;
        left -= step;
        if (piece->iov_len == 0)
            stream->unsealed_first++;
    }
    tcp_mac_finish(&stream->mac_out, stream->tag_out);
    stream->out[stream->out_count++] = (struct iovec){stream->tag_out, TCP_TAG_BYTES};
}

/* Sends what the connection takes now; whether anything went. */
static inline bool tcp_flush(tcp_stream *stream) {
    bool any = false;
    while (tcp_unsent(stream)) {
        bool header_only = stream->out_first == 0 && stream->out_count == 1;
        bool nothing = stream->out_first == stream->out_count;
        if (nothing)
            stream->out_first = stream->out_count = 0;
        if ((nothing || header_only) && stream->unsealed_first < stream->unsealed_count)
            tcp_seal_segment(stream);
        struct msghdr message = {0};
        message.msg_iov = stream->out + stream->out_first;
        message.msg_iovlen = (size_t)(stream->out_count - stream->out_first);
        ssize_t sent = sendmsg(stream->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                tcp_silence(stream);
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
