/* What lies where in the shared segment. Plain C, no Python: the thread-sanitised harness includes it as it is.
 *
 *   segment header | rank 0 block … rank R-1 block | rank 0 slot A, slot B | … | rank R-1 slot A, slot B
 *
 * Whoever writes a line is its only frequent writer; what different ranks write lies at least SHM_APART bytes
 * apart, because processors fetch lines in pairs. A slot's round number shares its first line with the call's
 * header and the first 32 bytes of payload, so a small collective costs one line transfer per peer.
 */
#ifndef PYCOBRE_SHM_LAYOUT_H
#define PYCOBRE_SHM_LAYOUT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SHM_MAGIC "PYCOBRE\0"
#define SHM_VERSION 1u
#define SHM_APART 128
#define SHM_PAGE 4096u
#define SHM_MAX_RANKS 1024u
#define SHM_MAX_CPUS 1024u
#define SHM_REASON_BYTES 512

enum { SHM_ABSENT = 0, SHM_CLAIMED = 1, SHM_ATTACHED = 2, SHM_CLOSED = 3 };

/* What a rank says about the collective it is in. Peers compare everything but `round` and their own counts. */
typedef struct {
    _Atomic uint32_t round; /* published last, with release: the slot is complete for this round */
    uint32_t dtype;
    uint64_t sequence;
    uint64_t count;
    uint32_t digest; /* of all counts of an allgatherv, so that every rank sees any disagreement */
    uint16_t root;
    uint8_t op;
    uint8_t reduce;
    unsigned char payload[]; /* at byte 32, on the same line */
} shm_slot;

_Static_assert(sizeof(shm_slot) == 32, "header and 32 bytes of payload share the first line");

typedef struct {
    alignas(SHM_APART) _Atomic uint32_t state;
    int32_t pid;
    uint64_t start_time;    /* of the process, in clock ticks since boot: pid alone may be reused */
    uint64_t pid_namespace; /* inode: a pid means nothing in another namespace */
    uint64_t probe;         /* address, in this rank's memory, of a word holding `probe_value` */
    uint64_t probe_value;
    unsigned char cpus[SHM_MAX_CPUS / 8];         /* where this rank may run */
    char reason[SHM_REASON_BYTES];                /* written by this rank before it sets the abort word */
    alignas(SHM_APART) _Atomic uint32_t sleepers; /* ranks asleep until this rank publishes */
    _Atomic uint32_t bell;                        /* the futex they sleep on; changes with every ring */
} shm_rank;

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t size;
    uint64_t bytes;    /* of the whole segment */
    uint64_t capacity; /* payload bytes of a slot */
    int32_t creator_pid;
    uint64_t creator_start_time;
    uint64_t creator_pid_namespace;
    alignas(SHM_APART) _Atomic uint32_t abort; /* 0, or what ended the communicator; read-mostly */
    shm_rank ranks[];
} shm_segment;

/* The abort word names the kind of failure, the rank that noticed it and the rank at fault. */
static inline uint32_t shm_abort_word(uint32_t kind, uint32_t author, uint32_t culprit) {
    return kind << 24 | author << 12 | culprit;
}
static inline uint32_t shm_abort_kind(uint32_t word) {
    return word >> 24;
}
static inline uint32_t shm_abort_author(uint32_t word) {
    return word >> 12 & 0xfffu;
}
static inline uint32_t shm_abort_culprit(uint32_t word) {
    return word & 0xfffu;
}

static inline size_t shm_round_up(size_t value, size_t step) {
    return (value + step - 1) / step * step;
}

static inline size_t shm_slots_offset(uint32_t size) {
    return shm_round_up(sizeof(shm_segment) + size * sizeof(shm_rank), SHM_PAGE);
}

static inline size_t shm_slot_stride(size_t capacity) {
    return shm_round_up(sizeof(shm_slot) + capacity, SHM_PAGE);
}

static inline size_t shm_segment_bytes(uint32_t size, size_t capacity) {
    return shm_slots_offset(size) + (size_t)size * 2 * shm_slot_stride(capacity);
}

/* Lays a fresh, zeroed mapping out. The caller makes it reachable by others only afterwards. */
static inline void shm_format(shm_segment *segment, uint32_t size, size_t capacity, int32_t pid, uint64_t start_time,
                              uint64_t pid_namespace) {
    segment->version = SHM_VERSION;
    segment->size = size;
    segment->capacity = capacity;
    segment->bytes = shm_segment_bytes(size, capacity);
    segment->creator_pid = pid;
    segment->creator_start_time = start_time;
    segment->creator_pid_namespace = pid_namespace;
    memcpy(segment->magic, SHM_MAGIC, sizeof segment->magic);
}

#endif
