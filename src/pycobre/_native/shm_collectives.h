/* The collectives, all made of one thing: the round.
 *
 * A round: fill the own slot, publish it, wait for each peer's slot of the same round, use what it holds. A
 * rank has completed a round when it has seen every peer in it; hence every round is a barrier, every rank sees
 * every peer's header, and of two slots per rank the one to be filled next has been read by everybody. Payloads
 * larger than a slot take one round per slotful, which overlaps filling with reading by itself.
 *
 * Two ranks may instead read each other's memory: one round that tells the addresses, the reading, and one
 * round that says it is done.
 */
#ifndef PYCOBRE_SHM_COLLECTIVES_H
#define PYCOBRE_SHM_COLLECTIVES_H

#include <sys/uio.h>

#include "shm_copy.h"
#include "shm_fold.h"
#include "shm_wait.h"

#define SHM_STREAM_BYTES (16u << 20)  /* receive buffers from here on do not stay in the caches anyway */
#define SHM_DIRECT_BYTES (512u << 10) /* direct reads win from here on (bytes in total, two ranks) */

/* What a rank says about the collective it calls; becomes the header of its slots. */
typedef struct {
    uint8_t op, reduce;
    uint16_t root;
    uint32_t dtype, digest;
    uint64_t sequence, count;
    const uint64_t *expected; /* the counts of the peers' headers, where they are not this one's count */
} shm_call;

static inline void shm_deliver(void *to, const void *from, size_t bytes, bool stream) {
    if (stream)
        shm_stream(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* Enters the next round: the own slot, with its header, to be filled and published. NULL: see failure. */
static inline shm_slot *shm_enter(shm_channel *channel, const shm_call *call) {
    if (channel->failure.kind != SHM_OK)
        return NULL;
    uint32_t told = atomic_load_explicit(&channel->segment->abort, memory_order_acquire);
    if (told != 0) {
        shm_record(channel, told);
        return NULL;
    }
    channel->expected = call->expected;
    shm_slot *slot = shm_slot_of(channel, channel->rank, ++channel->round);
    slot->dtype = call->dtype;
    slot->sequence = call->sequence;
    slot->count = call->count;
    slot->digest = call->digest;
    slot->root = call->root;
    slot->op = call->op;
    slot->reduce = call->reduce;
    return slot;
}

/* Waits for a peer's slot and compares what both sides call. NULL: see failure. */
static inline const shm_slot *shm_meet(shm_channel *channel, uint32_t peer) {
    if (shm_await(channel, peer) != 0)
        return NULL;
    if (__builtin_expect(!shm_agrees(channel, peer), 0)) {
        shm_disagree(channel, peer);
        return NULL;
    }
    return shm_slot_of(channel, peer, channel->round);
}

/* A round without payload. */
static inline int shm_barrier(shm_channel *channel, const shm_call *call) {
    shm_slot *slot = shm_enter(channel, call);
    if (slot == NULL)
        return -1;
    shm_publish(channel, slot);
    for (uint32_t r = 0; r < channel->size; r++)
        if (r != channel->rank && shm_meet(channel, r) == NULL)
            return -1;
    return 0;
}

static inline int shm_read_peer(shm_channel *channel, uint32_t peer, uint64_t address, char *to, size_t bytes) {
    while (bytes > 0) {
        struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
        ssize_t got = process_vm_readv(channel->segment->ranks[peer].pid, &local, 1, &remote, 1, 0);
        if (got <= 0)
            return shm_fail(channel, errno == ESRCH ? SHM_DEAD : SHM_UNREADABLE, peer);
        to += got, address += (uint64_t)got, bytes -= (size_t)got;
    }
    return 0;
}

static inline bool shm_goes_direct(const shm_channel *channel, size_t total_bytes) {
    return channel->size == 2 && channel->direct && total_bytes >= SHM_DIRECT_BYTES;
}

/* Two ranks: each reads `recv_bytes` from where the other's `send` is. */
static inline int shm_swap_directly(shm_channel *channel, const shm_call *call, const void *send, char *recv,
                                    size_t recv_bytes) {
    uint32_t peer = 1 - channel->rank;
    uint64_t address = (uint64_t)(uintptr_t)send;
    shm_slot *slot = shm_enter(channel, call);
    if (slot == NULL)
        return -1;
    memcpy(slot->payload, &address, sizeof address);
    shm_publish(channel, slot);
    const shm_slot *theirs = shm_meet(channel, peer);
    if (theirs == NULL)
        return -1;
    memcpy(&address, theirs->payload, sizeof address);
    if (shm_read_peer(channel, peer, address, recv, recv_bytes) != 0)
        return -1;
    /* The peer's buffer is the caller's again as soon as it returns: not before we have read it. */
    slot = shm_enter(channel, call);
    if (slot == NULL)
        return -1;
    shm_publish(channel, slot);
    return shm_meet(channel, peer) == NULL ? -1 : 0;
}

/* Rank r's `counts[r]` elements go to `recv + displs[r]` on every rank, slotful by slotful. */
static inline int shm_gather(shm_channel *channel, const shm_call *call, const char *send, char *recv,
                             const uint64_t *counts, const uint64_t *displs, size_t itemsize) {
    size_t capacity = channel->capacity;
    uint32_t self = channel->rank, size = channel->size;
    size_t own = counts[self] * itemsize, largest = 0, total = 0;
    for (uint32_t r = 0; r < size; r++) {
        size_t bytes = counts[r] * itemsize;
        total += bytes;
        if (bytes > largest)
            largest = bytes;
    }
    bool stream = total >= SHM_STREAM_BYTES;
    size_t done = 0;
    do {
        size_t mine = own > done ? shm_min(own - done, capacity) : 0;
        shm_slot *slot = shm_enter(channel, call);
        if (slot == NULL)
            return -1;
        char *place = recv + displs[self] * itemsize + done;
        if (stream)
            shm_stream_and_copy(place, slot->payload, send + done, mine);
        else
            memcpy(slot->payload, send + done, mine);
        shm_publish(channel, slot);
        if (!stream)
            memcpy(place, send + done, mine);
        for (uint32_t step = 1; step < size; step++) {
            uint32_t peer = (self + step) % size; /* each starts with another: no queue at one rank's slot */
            const shm_slot *theirs = shm_meet(channel, peer);
            if (theirs == NULL)
                return -1;
            size_t bytes = counts[peer] * itemsize;
            if (bytes <= done)
                continue;
            place = recv + displs[peer] * itemsize + done;
            shm_deliver(place, theirs->payload, shm_min(bytes - done, capacity), stream);
        }
        done += capacity;
    } while (done < largest);
    return 0;
}

static inline int shm_allgatherv(shm_channel *channel, const shm_call *call, const char *send, char *recv,
                                 const uint64_t *counts, const uint64_t *displs, size_t itemsize) {
    size_t total = channel->size == 2 ? (counts[0] + counts[1]) * itemsize : 0;
    if (shm_goes_direct(channel, total)) {
        uint32_t self = channel->rank, peer = 1 - self;
        shm_deliver(recv + displs[self] * itemsize, send, counts[self] * itemsize, total >= SHM_STREAM_BYTES);
        return shm_swap_directly(channel, call, send, recv + displs[peer] * itemsize, counts[peer] * itemsize);
    }
    return shm_gather(channel, call, send, recv, counts, displs, itemsize);
}

/* Every rank folds all contributions itself, in rank order: the same bits as one rank doing it for all, and
 * half the waiting. */
static inline int shm_allreduce(shm_channel *channel, const shm_call *call, const char *send, char *recv,
                                size_t itemsize, shm_fold fold) {
    size_t per_round = channel->capacity / itemsize;
    for (size_t done = 0; done < call->count; done += per_round) {
        size_t count = shm_min(call->count - done, per_round);
        shm_slot *slot = shm_enter(channel, call);
        if (slot == NULL)
            return -1;
        memcpy(slot->payload, send + done * itemsize, count * itemsize);
        shm_publish(channel, slot);
        for (uint32_t r = 0; r < channel->size; r++)
            if (r != channel->rank && shm_meet(channel, r) == NULL)
                return -1;
        char *out = recv + done * itemsize;
        memcpy(out, shm_slot_of(channel, 0, channel->round)->payload, count * itemsize);
        for (uint32_t r = 1; r < channel->size; r++)
            fold(out, shm_slot_of(channel, r, channel->round)->payload, count);
    }
    return 0;
}

/* Root's slots carry the payload, the others' only their headers: they say that the slot before was read. */
static inline int shm_broadcast(shm_channel *channel, const shm_call *call, char *buf, size_t bytes) {
    size_t capacity = channel->capacity;
    bool is_root = channel->rank == call->root;
    if (shm_goes_direct(channel, bytes))
        return shm_swap_directly(channel, call, buf, buf, is_root ? 0 : bytes);
    size_t done = 0;
    do {
        size_t count = shm_min(bytes - done, capacity);
        shm_slot *slot = shm_enter(channel, call);
        if (slot == NULL)
            return -1;
        if (is_root)
            memcpy(slot->payload, buf + done, count);
        shm_publish(channel, slot);
        for (uint32_t r = 0; r < channel->size; r++) {
            if (r == channel->rank)
                continue;
            const shm_slot *theirs = shm_meet(channel, r);
            if (theirs == NULL)
                return -1;
            if (r == call->root)
                memcpy(buf + done, theirs->payload, count);
        }
        done += capacity;
    } while (done < bytes);
    return 0;
}

#endif
