/* Waiting for peers: spin, yield, sleep; and everything that may end a wait other than the peer's arrival.
 *
 * The fast path is one acquire load. Death, closing, abort, timeout and signals are looked for only between
 * slices of sleep, so watching costs a collective in progress nothing.
 */
#ifndef PYCOBRE_SHM_WAIT_H
#define PYCOBRE_SHM_WAIT_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm_layout.h"

#define SHM_SLICE_NS 20000000 /* sleep between looks at the peers' health */
#define SHM_SPINS_HOT 200     /* looks without a pause: a pause takes as long as a small collective may */
#define SHM_SPINS_MIN 240     /* with pauses of some tens of nanoseconds: about 2 µs */
#define SHM_SPINS_MAX 500     /* about 15 µs */
#define SHM_CROWDED_NS 500000 /* away for so long after a yield: others want this core too */
#define SHM_CROWDED_WAITS 100 /* that many waits are then spent asleep from the start */
#define SHM_YIELD_NS 1000000  /* of sched_yield before sleeping: waking a sleeper costs some 80 µs */

typedef enum {
    SHM_OK = 0,
    SHM_DEAD = 1,        /* the process of a peer ended */
    SHM_LEFT = 2,        /* a peer closed its communicator */
    SHM_STALLED = 3,     /* a peer did not come within the timeout */
    SHM_ABORTED = 4,     /* a peer called abort */
    SHM_INTERRUPTED = 5, /* a signal handler raised while a rank was waiting */
    SHM_MISMATCH = 6,    /* a peer is in another collective */
    SHM_UNREADABLE = 7,  /* the memory of a peer could be read at the start, and now cannot */
} shm_kind;

typedef struct {
    shm_kind kind;
    uint32_t culprit;
    uint32_t author; /* the rank that noticed */
    /* For SHM_MISMATCH: what both sides said. */
    shm_slot mine, theirs;
} shm_failure;

typedef struct {
    shm_segment *segment;
    char *slots;
    size_t slot_stride, capacity;
    uint32_t rank, size;
    uint32_t round;           /* the last one entered */
    const uint64_t *expected; /* what each peer's header should count in it; NULL: what the own one does */
    bool spin;                /* every rank has a core of its own */
    uint32_t crowded;         /* waits to come in which not to yield */
    uint32_t spins;           /* how long to spin; grows while spinning pays, shrinks when it does not */
    bool direct;              /* every rank may read every other's memory */
    int64_t timeout_ns;
    struct pollfd *watched; /* a pidfd per rank; -1 for this rank and for those not attached yet */
    /* The host language's say in long waits, all optional: before, after, and whether to give up. */
    void (*before_wait)(void *context);
    void (*after_wait)(void *context);
    bool (*interrupted)(void *context);
    void *context;
    shm_failure failure; /* the first one; it stays */
} shm_channel;

/* The slot `rank` uses in `round`: two per rank, in turn. One full round lies between two uses of a slot, and
 * a rank completes a round only when every peer has entered it, that is, has left the round before. */
static inline shm_slot *shm_slot_of(const shm_channel *channel, uint32_t rank, uint32_t round) {
    return (shm_slot *)(channel->slots + ((size_t)rank * 2 + (round & 1u)) * channel->slot_stride);
}

static inline void shm_bind(shm_channel *channel, shm_segment *segment, uint32_t rank) {
    channel->segment = segment;
    channel->slots = (char *)segment + shm_slots_offset(segment->size);
    channel->slot_stride = shm_slot_stride(segment->capacity);
    channel->capacity = segment->capacity;
    channel->rank = rank;
    channel->size = segment->size;
    channel->spins = SHM_SPINS_MAX;
}

static inline int64_t shm_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void shm_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static inline void shm_ring(shm_rank *rank) {
    atomic_fetch_add(&rank->bell, 1);
    syscall(SYS_futex, &rank->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void shm_ring_all(shm_channel *channel) {
    for (uint32_t r = 0; r < channel->size; r++)
        shm_ring(&channel->segment->ranks[r]);
}

static inline int shm_record(shm_channel *channel, uint32_t word) {
    channel->failure.kind = shm_abort_kind(word);
    channel->failure.author = shm_abort_author(word);
    channel->failure.culprit = shm_abort_culprit(word);
    return -1;
}

/* Tells the peers why the communicator ended, unless somebody has done so, and wakes whoever sleeps.
 * Returns the abort word that holds now. */
static inline uint32_t shm_tell(shm_channel *channel, shm_kind kind, uint32_t culprit) {
    uint32_t told = 0;
    uint32_t word = shm_abort_word(kind, channel->rank, culprit);
    if (!atomic_compare_exchange_strong(&channel->segment->abort, &told, word))
        return told;
    shm_ring_all(channel);
    return word;
}

static inline int shm_fail(shm_channel *channel, shm_kind kind, uint32_t culprit) {
    return shm_record(channel, shm_tell(channel, kind, culprit));
}

/* Looks for a peer that closed or died. Returns the kind and sets `culprit`. */
static inline shm_kind shm_find_gone(shm_channel *channel, uint32_t *culprit) {
    *culprit = 0;
    for (uint32_t r = 0; r < channel->size; r++) {
        if (r != channel->rank && atomic_load(&channel->segment->ranks[r].state) == SHM_CLOSED) {
            *culprit = r;
            return SHM_LEFT;
        }
    }
    if (poll(channel->watched, channel->size, 0) <= 0)
        return SHM_OK;
    while (channel->watched[*culprit].revents == 0)
        ++*culprit;
    /* It may have closed between the two looks, and then ended as it should. */
    return atomic_load(&channel->segment->ranks[*culprit].state) == SHM_CLOSED ? SHM_LEFT : SHM_DEAD;
}

/* Whether a peer that is in this round calls what this rank calls. If the ranks do not all agree, each of them
 * differs from some peer and so finds out by itself, from headers that stay where they are. */
static inline bool shm_agrees(const shm_channel *channel, uint32_t peer) {
    const shm_slot *mine = shm_slot_of(channel, channel->rank, channel->round);
    const shm_slot *theirs = shm_slot_of(channel, peer, channel->round);
    return theirs->sequence == mine->sequence && theirs->dtype == mine->dtype && theirs->digest == mine->digest &&
           theirs->root == mine->root && theirs->op == mine->op && theirs->reduce == mine->reduce &&
           theirs->count == (channel->expected != NULL ? channel->expected[peer] : mine->count);
}

static inline int shm_disagree(shm_channel *channel, uint32_t peer) {
    channel->failure.kind = SHM_MISMATCH;
    channel->failure.author = channel->rank;
    channel->failure.culprit = peer;
    memcpy(&channel->failure.mine, shm_slot_of(channel, channel->rank, channel->round), sizeof(shm_slot));
    memcpy(&channel->failure.theirs, shm_slot_of(channel, peer, channel->round), sizeof(shm_slot));
    return -1;
}

static inline bool shm_arrived(const shm_slot *slot, uint32_t round) {
    return atomic_load_explicit(&slot->round, memory_order_acquire) == round;
}

/* One slice of sleep. Registering as a sleeper before the last look at the slot, while the publisher stores its
 * round before it looks for sleepers (both sequentially consistent), leaves no wake-up to be lost; the bell's
 * value makes the kernel refuse to sleep when it rang in between. */
static inline void shm_sleep(shm_channel *channel, uint32_t peer, const shm_slot *slot, uint32_t round) {
    shm_rank *rank = &channel->segment->ranks[peer];
    atomic_fetch_add(&rank->sleepers, 1);
    uint32_t heard = atomic_load(&rank->bell);
    if (atomic_load(&slot->round) != round && atomic_load(&channel->segment->abort) == 0) {
        struct timespec slice = {.tv_sec = 0, .tv_nsec = SHM_SLICE_NS};
        syscall(SYS_futex, &rank->bell, FUTEX_WAIT, heard, &slice, NULL, 0);
    }
    atomic_fetch_sub(&rank->sleepers, 1);
}

/* Gives the core away until the peer has come, for a while. On a crowded machine it comes back only after somebody
 * else's whole time slice, whereas a sleeper is run as soon as it is woken: then there is no yielding for some time. */
static inline bool shm_yield(shm_channel *channel, const shm_slot *slot, uint32_t round) {
    if (channel->crowded > 0) {
        channel->crowded--;
        return false;
    }
    int64_t start = shm_now_ns(), before = start;
    for (;;) {
        sched_yield();
        int64_t now = shm_now_ns();
        if (now - before > SHM_CROWDED_NS)
            channel->crowded = SHM_CROWDED_WAITS;
        if (shm_arrived(slot, round))
            return true;
        if (channel->crowded > 0 || now - start > SHM_YIELD_NS)
            return false;
        before = now;
    }
}

/* What may have happened instead of the peer's coming. Nonzero: see channel->failure; zero: wait on. */
static inline int shm_look_around(shm_channel *channel, uint32_t peer, int64_t waited) {
    uint32_t round = channel->round, culprit;
    uint32_t told = atomic_load(&channel->segment->abort);
    shm_kind gone = told ? SHM_OK : shm_find_gone(channel, &culprit);
    /* Whoever is gone may have completed this round first, and then the awaited peer has entered it. */
    if (shm_arrived(shm_slot_of(channel, peer, round), round))
        return 0;
    /* A rank that found the others in another collective may have left: say that rather than that it left. */
    for (uint32_t r = 0; r < channel->size; r++)
        if (r != channel->rank && shm_arrived(shm_slot_of(channel, r, round), round) && !shm_agrees(channel, r))
            return shm_disagree(channel, r);
    if (told)
        return shm_record(channel, told);
    if (gone != SHM_OK)
        return shm_fail(channel, gone, culprit);
    if (waited > channel->timeout_ns)
        return shm_fail(channel, SHM_STALLED, peer);
    if (channel->interrupted != NULL && channel->interrupted(channel->context))
        return shm_fail(channel, SHM_INTERRUPTED, channel->rank);
    return 0;
}

static inline int shm_wait_in_turns(shm_channel *channel, uint32_t peer) {
    const shm_slot *slot = shm_slot_of(channel, peer, channel->round);
    if (shm_yield(channel, slot, channel->round))
        return 0;
    int64_t now = shm_now_ns(), waited = 0;
    for (;;) {
        shm_sleep(channel, peer, slot, channel->round);
        if (shm_arrived(slot, channel->round))
            return 0;
        /* A slice that lasted far too long means that this process was stopped, and its peers perhaps too. */
        int64_t before = now, most = 10 * (int64_t)SHM_SLICE_NS;
        now = shm_now_ns();
        waited += now - before < most ? now - before : most;
        if (shm_look_around(channel, peer, waited) != 0)
            return -1;
    }
}

static __attribute__((noinline)) int shm_await_slowly(shm_channel *channel, uint32_t peer) {
    if (channel->before_wait != NULL)
        channel->before_wait(channel->context);
    int status = shm_wait_in_turns(channel, peer);
    if (channel->after_wait != NULL)
        channel->after_wait(channel->context);
    return status;
}

/* Waits until `peer` has published its slot for the current round. Nonzero: see channel->failure. */
static inline int shm_await(shm_channel *channel, uint32_t peer) {
    uint32_t round = channel->round;
    const shm_slot *slot = shm_slot_of(channel, peer, round);
    if (shm_arrived(slot, round))
        return 0;
    if (channel->spin) {
        for (uint32_t i = 0; i < channel->spins; i++) {
            if (i >= SHM_SPINS_HOT)
                shm_pause();
            if (shm_arrived(slot, round)) {
                if (channel->spins < SHM_SPINS_MAX)
                    channel->spins++;
                return 0;
            }
        }
        /* The peer is busy or has lost its core to somebody else. Yielding notices its arrival almost as soon. */
        if (channel->spins > SHM_SPINS_MIN)
            channel->spins -= channel->spins / 8;
    }
    return shm_await_slowly(channel, peer);
}

/* Makes this rank's slot visible and wakes the peers that sleep for it, if any do. */
static inline void shm_publish(shm_channel *channel, shm_slot *slot) {
    shm_rank *self = &channel->segment->ranks[channel->rank];
    atomic_store(&slot->round, channel->round);
    if (__builtin_expect(atomic_load(&self->sleepers) != 0, 0))
        shm_ring(self);
}

#endif
