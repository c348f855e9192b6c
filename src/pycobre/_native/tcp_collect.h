/* The coordinator's end of the star: take in, fold, forward. See pycobre.comm.tcp.collect for the algorithm. */
#ifndef PYCOBRE_TCP_COLLECT_H
#define PYCOBRE_TCP_COLLECT_H

#include "tcp_star.h"

/* One worker's share in the present collective. */
struct tcp_leg {
    bool entered;
    bool ended;       /* the frame that ends the collective is queued */
    bool whole;       /* that frame has gone: whether it is still there is no business of this collective */
    uint64_t missing; /* bytes of its contribution that have not come */
    uint64_t owed;    /* bytes of the result that have not been queued */
};

typedef struct {
    const tcp_header *call;
    const char *mine; /* folding: the coordinator's own contribution; else NULL */
    uint64_t window;  /* folding: bytes of the window under way */
    uint64_t total;   /* bytes of all blocks */
    uint32_t absent;  /* workers that have not entered */
    uint32_t untaken; /* workers whose contribution is not complete */
    uint32_t unended;
    uint32_t aimed; /* folding: workers whose window is not complete */
    bool small;
    const char *packed; /* small: the workers' blocks in rank order without gaps */
} tcp_collective;

static inline bool tcp_taken(const tcp_leg *leg) {
    return leg->entered && leg->missing == 0;
}

/* Where a worker's block is among the packed ones. */
static inline uint64_t tcp_offset(const tcp_star *star, uint32_t rank) {
    uint64_t offset = 0;
    for (uint32_t r = 1; r < rank; r++)
        offset += star->blocks[r].bytes;
    return offset;
}

static inline bool tcp_done(const tcp_star *star, uint32_t i) {
    return tcp_taken(&star->legs[i]) &&
           (star->legs[i].whole || (star->legs[i].ended && !tcp_unsent(&star->streams[i])));
}

/* Whether the next thing must come from this worker; when folding, one that is ahead of the others waits. */
static inline bool tcp_expects_input(const tcp_star *star, uint32_t i) {
    return !star->legs[i].entered || tcp_filling(&star->streams[i]);
}

/* Folding: aims a worker's stream at its share of the window. */
static inline void tcp_aim_window(tcp_star *star, const tcp_collective *all, uint32_t i) {
    star->streams[i].to = star->staged + (size_t)i * TCP_WINDOW_BYTES;
    star->streams[i].to_left = all->window;
}

static inline int tcp_enter(tcp_star *star, tcp_collective *all, uint32_t i, bool *progress) {
    tcp_stream *stream = &star->streams[i];
    tcp_leg *leg = &star->legs[i];
    tcp_header header;
    int found = tcp_next_header(stream, all->small, &header);
    if (found < 0)
        return tcp_lost(star, stream, found);
    if (found == 0)
        return TCP_OK;
    int status = tcp_control(star, stream, &header);
    if (status != TCP_OK)
        return status;
    if (header.kind != TCP_CALL)
        return tcp_refuse(star, TCP_UNEXPECTED, stream, &header, NULL);
    uint64_t expected = star->blocks[all->mine != NULL ? 0 : stream->rank].bytes;
    if (!tcp_same_call(&header, all->call) || header.length != expected)
        return tcp_refuse(star, TCP_MISMATCH, stream, &header, all->call);
    *progress = true;
    leg->entered = true;
    leg->missing = expected;
    all->absent--;
    if (expected == 0) {
        all->untaken--;
        return TCP_OK;
    }
    if (all->mine != NULL) {
        tcp_aim_window(star, all, i);
    } else {
        stream->to = star->blocks[stream->rank].data;
        stream->to_left = expected;
    }
    return TCP_OK;
}

/* Takes in what has come from a worker. */
static inline int tcp_take(tcp_star *star, tcp_collective *all, uint32_t i, bool *progress) {
    tcp_stream *stream = &star->streams[i];
    tcp_leg *leg = &star->legs[i];
    if (!leg->entered) {
        int status = tcp_enter(star, all, i, progress);
        if (status != TCP_OK || !leg->entered)
            return status;
    }
    if (!tcp_filling(stream))
        return TCP_OK;
    ssize_t moved = tcp_fill(stream);
    if (moved < 0)
        return tcp_lost(star, stream, moved);
    if (moved == 0)
        return TCP_OK;
    *progress = true;
    leg->missing -= (uint64_t)moved;
    if (all->mine == NULL)
        star->blocks[stream->rank].ready += (uint64_t)moved;
    else if (!tcp_filling(stream))
        all->aimed--;
    if (leg->missing == 0)
        all->untaken--;
    if (leg->missing == 0 && all->packed == star->packed) {
        const tcp_block *block = &star->blocks[stream->rank];
        memcpy(star->packed + tcp_offset(star, stream->rank), block->data, block->bytes);
    }
    return TCP_OK;
}

/* Folds the window once every worker's share of it is there, and aims at the next. */
static inline int tcp_fold_window(tcp_star *star, tcp_collective *all) {
    tcp_block *result = star->blocks;
    star->parts[0] = all->mine + result->ready;
    for (uint32_t i = 0; i < star->peers; i++)
        star->parts[i + 1] = star->staged + (size_t)i * TCP_WINDOW_BYTES;
    if (!star->fold(star->context, result->data + result->ready, star->parts, all->window))
        return tcp_fail(star, TCP_RAISED, star->rank, 0);
    result->ready += all->window;
    uint64_t left = result->bytes - result->ready;
    all->window = left < TCP_WINDOW_BYTES ? left : TCP_WINDOW_BYTES;
    all->aimed = all->window ? star->peers : 0;
    for (uint32_t i = 0; i < star->peers; i++)
        tcp_aim_window(star, all, i);
    return TCP_OK;
}

/* Everything a worker lacks, in one frame, once all others' contributions are there. */
static inline void tcp_forward_small(tcp_star *star, tcp_collective *all, uint32_t i) {
    tcp_stream *stream = &star->streams[i];
    tcp_leg *leg = &star->legs[i];
    if (all->untaken - !tcp_taken(leg) != 0)
        return;
    uint64_t own = star->blocks[stream->rank].bytes, theirs = all->total - star->blocks[0].bytes;
    uint64_t before = tcp_offset(star, stream->rank);
    tcp_header head = *all->call;
    head.kind = TCP_RESULT;
    head.block = 0;
    head.length = leg->owed;
    tcp_queue(stream, &head);
    tcp_queue_piece(stream, star->blocks[0].data, star->blocks[0].bytes);
    tcp_queue_piece(stream, all->packed, before);
    tcp_queue_piece(stream, all->packed + before + own, theirs - before - own);
    leg->ended = true;
    all->unended--;
}

/* The next piece of any block, as soon as there is one. */
static inline void tcp_forward_large(tcp_star *star, tcp_collective *all, uint32_t i) {
    tcp_stream *stream = &star->streams[i];
    tcp_leg *leg = &star->legs[i];
    uint64_t *sent = star->sent + (size_t)i * star->size;
    bool others_entered = all->absent - !leg->entered == 0;
    tcp_header head = *all->call;
    head.block = 0;
    head.offset = head.length = 0;
    const char *piece = NULL;
    for (uint32_t r = 0; r < star->nblocks; r++) {
        if (r == stream->rank)
            continue;
        uint64_t length = star->blocks[r].ready - sent[r];
        if (length > TCP_MAX_CHUNK_BYTES)
            length = TCP_MAX_CHUNK_BYTES;
        if (length == 0 || (length < TCP_CHUNK_BYTES && star->blocks[r].ready < star->blocks[r].bytes))
            continue;
        if (length == leg->owed && !others_entered)
            return;
        head.block = r;
        head.offset = sent[r];
        head.length = length;
        piece = star->blocks[r].data + sent[r];
        sent[r] += length;
        break;
    }
    if (piece == NULL && (leg->owed || !others_entered))
        return;
    leg->owed -= head.length;
    leg->ended = leg->owed == 0;
    if (leg->ended)
        all->unended--;
    head.kind = leg->ended ? TCP_LAST : TCP_CHUNK;
    tcp_queue(stream, &head);
    tcp_queue_piece(stream, piece, head.length);
}

/* Sleeps, and looks for those who are gone or silent. */
static inline int tcp_wait_for_workers(tcp_star *star, tcp_collective *all, int64_t *say_at_ns) {
    tcp_look_at_clock(star);
    nfds_t count = 0;
    for (uint32_t i = 0; i < star->peers; i++) {
        tcp_stream *stream = &star->streams[i];
        /* Of a worker that has all it needs, not even its end is our business: it may close and go. */
        if (tcp_done(star, i))
            continue;
        bool expects = tcp_expects_input(star, i), unsent = tcp_unsent(stream);
        if ((expects || unsent) && tcp_is_silent(star, stream))
            return tcp_fail(star, TCP_TIMEOUT, stream->rank, 0);
        short events = (expects ? POLLIN : 0) | (unsent ? POLLOUT : 0);
        star->polls[count++] = (struct pollfd){stream->fd, (short)(events | POLLRDHUP), 0};
    }
    int status = tcp_sleep(star, count);
    if (status != TCP_OK)
        return status;
    count = 0;
    for (uint32_t i = 0; i < star->peers; i++) {
        if (tcp_done(star, i))
            continue;
        short events = star->polls[count++].revents;
        bool gone = events & (POLLRDHUP | POLLHUP | POLLERR);
        if (gone && tcp_taken(&star->legs[i]))
            status = tcp_final_message(star, &star->streams[i]);
        else if (gone && !tcp_expects_input(star, i))
            status = tcp_disconnected(star, &star->streams[i]);
        if (status != TCP_OK)
            return status;
    }
    if (star->waited_ns < *say_at_ns)
        return TCP_OK;
    *say_at_ns = star->waited_ns + star->timeout_ns / 4;
    tcp_header waiting = *all->call;
    waiting.kind = TCP_WAITING;
    waiting.length = 0;
    for (uint32_t i = 0; i < star->peers; i++) {
        /* One whose bytes are awaited is not told: what is sent to it would count as its activity, so that it could
         * stop in the middle of its contribution and never be blamed. */
        if (tcp_expects_input(star, i) || tcp_unsent(&star->streams[i]))
            continue;
        /* One that has its result may be in the next collective, and would blame this rank for the silence. */
        star->legs[i].whole = star->legs[i].ended;
        tcp_queue(&star->streams[i], &waiting);
    }
    return TCP_OK;
}

/* Where the workers' blocks lie in rank order without gaps: in the result itself, if they do, else in memory
 * into which they are copied as they come. */
static inline const char *tcp_packed(const tcp_star *star) {
    const char *first = NULL, *next = NULL;
    for (uint32_t r = 1; r < star->nblocks; r++) {
        if (star->blocks[r].bytes == 0)
            continue;
        if (first == NULL)
            first = star->blocks[r].data;
        else if (star->blocks[r].data != next)
            return star->packed;
        next = star->blocks[r].data + star->blocks[r].bytes;
    }
    return first;
}

/* Runs a collective. `mine` is the coordinator's contribution to a reduction that it folds itself, else NULL. */
static inline int tcp_coordinate(tcp_star *star, const tcp_header *call, const char *mine) {
    tcp_collective all = {.call = call, .mine = mine};
    for (uint32_t r = 0; r < star->nblocks; r++)
        all.total += star->blocks[r].bytes;
    all.small = mine == NULL && all.total <= TCP_SMALL_BYTES;
    if (all.small)
        all.packed = tcp_packed(star);
    all.absent = all.untaken = all.unended = all.aimed = star->peers;
    for (uint32_t r = 0; r < star->nblocks; r++)
        star->blocks[r].ready = 0;
    if (mine != NULL)
        all.window = all.total < TCP_WINDOW_BYTES ? all.total : TCP_WINDOW_BYTES;
    else
        star->blocks[0].ready = star->blocks[0].bytes;
    for (uint32_t i = 0; i < star->peers; i++) {
        uint32_t rank = star->streams[i].rank;
        uint64_t own = rank < star->nblocks ? star->blocks[rank].bytes : 0;
        star->legs[i] = (tcp_leg){.owed = all.total - own};
    }
    if (!all.small)
        memset(star->sent, 0, (size_t)star->peers * star->size * sizeof *star->sent);
    tcp_begin(star);
    int64_t say_at_ns = star->timeout_ns / 10;
    for (;;) {
        bool progress = false;
        uint32_t busy = 0;
        for (uint32_t i = 0; i < star->peers; i++) {
            tcp_stream *stream = &star->streams[i];
            tcp_leg *leg = &star->legs[i];
            if (!tcp_unsent(stream) && !leg->ended)
                (all.small ? tcp_forward_small : tcp_forward_large)(star, &all, i);
            if (tcp_unsent(stream))
                progress = tcp_flush(stream) || progress;
            busy += tcp_unsent(stream);
            if (!tcp_taken(leg)) {
                int status = tcp_take(star, &all, i, &progress);
                if (status != TCP_OK)
                    return status;
            }
            if (stream->mute && tcp_taken(leg) && !leg->whole) {
                int status = tcp_final_message(star, stream);
                return status != TCP_OK ? status : tcp_disconnected(star, stream);
            }
        }
        if (mine != NULL && all.aimed == 0 && all.window) {
            int status = tcp_fold_window(star, &all);
            if (status != TCP_OK)
                return status;
            progress = true;
        }
        if (all.untaken == 0 && all.unended == 0 && busy == 0) {
            tcp_copy_rest(star);
            return TCP_OK;
        }
        if (progress) {
            tcp_progressed(star);
            continue;
        }
        if (!tcp_spin(star))
            continue;
        int status = tcp_wait_for_workers(star, &all, &say_at_ns);
        if (status != TCP_OK)
            return status;
    }
}

#endif
