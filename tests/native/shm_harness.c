/* The shm collectives with threads as ranks, for ThreadSanitizer: the very headers of the native module.
 *
 *   shm_harness RANKS ROUNDS TIMEOUT_S
 *
 * Mixed collectives of changing sizes, contents checked, with the waits pushed through all their phases (spin,
 * yield, sleep) by ranks that dawdle; then an abort that must wake everybody. Prints what was wrong, if anything.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shm_collectives.h"

enum { CAPACITY = 512, LARGEST = 3 * CAPACITY / 8 + 5 };

static shm_segment *segment;
static uint32_t size;
static long rounds;
static _Atomic long wrong;

typedef struct {
    shm_channel channel;
    uint64_t sequence;
    unsigned random;
} rank_state;

static void expect(int good, const char *what) {
    if (!good && atomic_fetch_add(&wrong, 1) < 10) fprintf(stderr, "wrong: %s\n", what);
}

static shm_call next_call(rank_state *state, uint8_t op, uint64_t count) {
    shm_call call = {.op = op, .sequence = ++state->sequence, .count = count};
    return call;
}

/* Sometimes let the others wait long enough to yield, or to fall asleep. */
static void dawdle(rank_state *state) {
    state->random = state->random * 1664525u + 1013904223u;
    unsigned chance = state->random >> 16 & 1023u;
    struct timespec pause = {0, chance == 0 ? 3 * SHM_YIELD_NS : 20000};
    if (chance < 8) nanosleep(&pause, NULL);
}

static void gather(rank_state *state, uint64_t count, int64_t salt) {
    uint64_t counts[SHM_MAX_RANKS], displs[SHM_MAX_RANKS], total = 0;
    int64_t send[LARGEST], *recv;
    for (uint32_t r = 0; r < size; r++) {
        counts[r] = (count + r) % LARGEST;
        displs[r] = total;
        total += counts[r];
    }
    recv = malloc((total + 1) * sizeof *recv);
    for (uint64_t i = 0; i < counts[state->channel.rank]; i++) send[i] = salt + state->channel.rank * 1000 + (long)i;
    shm_call call = next_call(state, 2, counts[state->channel.rank]);
    call.expected = counts;
    expect(shm_allgatherv(&state->channel, &call, (char *)send, (char *)recv, counts, displs, 8) == 0, "status");
    for (uint32_t r = 0; r < size; r++)
        for (uint64_t i = 0; i < counts[r]; i++)
            expect(recv[displs[r] + i] == salt + r * 1000 + (long)i, "allgatherv");
    free(recv);
}

static void reduce(rank_state *state, uint64_t count, int64_t salt) {
    int64_t send[LARGEST], recv[LARGEST];
    for (uint64_t i = 0; i < count; i++) send[i] = salt + state->channel.rank + (long)i;
    shm_call call = next_call(state, 3, count);
    call.reduce = SHM_SUM;
    shm_fold fold = shm_fold_for('i', 8, SHM_SUM);
    expect(shm_allreduce(&state->channel, &call, (char *)send, (char *)recv, 8, fold) == 0, "status");
    for (uint64_t i = 0; i < count; i++)
        expect(recv[i] == size * (salt + (long)i) + size * (size - 1) / 2, "allreduce");
}

static void broadcast(rank_state *state, uint64_t count, int64_t salt) {
    int64_t buf[LARGEST];
    uint32_t root = (uint32_t)salt % size;
    for (uint64_t i = 0; i < count; i++) buf[i] = root == state->channel.rank ? salt + (long)i : -1;
    shm_call call = next_call(state, 4, count);
    call.root = (uint16_t)root;
    expect(shm_broadcast(&state->channel, &call, (char *)buf, count * 8) == 0, "status");
    for (uint64_t i = 0; i < count; i++) expect(buf[i] == salt + (long)i, "broadcast");
}

static void *run(void *argument) {
    rank_state *state = argument;
    for (long i = 0; i < rounds; i++) {
        uint64_t count = (uint64_t)(i * 7919) % LARGEST;
        gather(state, count, i);
        dawdle(state);
        reduce(state, count + 1, i);
        broadcast(state, count, i);
        dawdle(state);
        shm_call call = next_call(state, 1, 0);
        expect(shm_barrier(&state->channel, &call) == 0, "barrier");
    }
    /* The last rank aborts; the others wait for it, asleep by then, and must learn who it was and why. */
    if (state->channel.rank == size - 1) {
        struct timespec pause = {0, 3 * SHM_YIELD_NS};
        nanosleep(&pause, NULL);
        strcpy(segment->ranks[size - 1].reason, "enough");
        shm_tell(&state->channel, SHM_ABORTED, size - 1);
    } else {
        shm_call call = next_call(state, 1, 0);
        expect(shm_barrier(&state->channel, &call) != 0, "a barrier without everybody");
        shm_failure *failure = &state->channel.failure;
        expect(failure->kind == SHM_ABORTED && failure->culprit == size - 1, "blame");
        expect(strcmp(segment->ranks[failure->author].reason, "enough") == 0, "reason");
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    size = (uint32_t)atoi(argv[1]);
    rounds = atol(argv[2]);
    size_t bytes = shm_segment_bytes(size, CAPACITY);
    segment = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (segment == MAP_FAILED) return 2;
    shm_format(segment, size, CAPACITY, getpid(), 1, 1);
    rank_state *states = calloc(size, sizeof *states);
    pthread_t threads[SHM_MAX_RANKS];
    struct pollfd *nobody = calloc((size_t)size * size, sizeof *nobody); /* `poll` writes into it: one row per rank */
    for (uint32_t i = 0; i < size * size; i++) nobody[i].fd = -1;
    for (uint32_t r = 0; r < size; r++) {
        shm_bind(&states[r].channel, segment, r);
        states[r].channel.spin = r % 2 == 0;
        states[r].channel.timeout_ns = atol(argv[3]) * 1000000000;
        states[r].channel.watched = nobody + (size_t)r * size;
        states[r].channel.round = UINT32_MAX - 1000; /* the numbers of the rounds wrap around on the way */
        states[r].random = r + 1;
        pthread_create(&threads[r], NULL, run, &states[r]);
    }
    for (uint32_t r = 0; r < size; r++) pthread_join(threads[r], NULL);
    free(states);
    free(nobody);
    printf("%ld wrong\n", (long)wrong);
    return wrong != 0;
}
