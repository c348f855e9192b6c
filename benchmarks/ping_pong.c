/* Prints the median round trip, in µs, of one cache line that two threads on two cores write in turn. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 100000, BATCHES = 21 };

static _Alignas(128) atomic_int ball;

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *reply(void *unused) {
    pin(1);
    for (int i = 1; i <= ROUNDS * BATCHES; i++) {
        while (atomic_load_explicit(&ball, memory_order_acquire) != 2 * i - 1) {}
        atomic_store_explicit(&ball, 2 * i, memory_order_release);
    }
    return unused;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    double times[BATCHES];
    pthread_t thread;
    pthread_create(&thread, NULL, reply, NULL);
    pin(0);
    int i = 1;
    for (int batch = 0; batch < BATCHES; batch++) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int n = 0; n < ROUNDS; n++, i++) {
            atomic_store_explicit(&ball, 2 * i - 1, memory_order_release);
            while (atomic_load_explicit(&ball, memory_order_acquire) != 2 * i) {}
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        times[batch] = ((end.tv_sec - start.tv_sec) * 1e6 + (end.tv_nsec - start.tv_nsec) / 1e3) / ROUNDS;
    }
    pthread_join(thread, NULL);
    qsort(times, BATCHES, sizeof *times, compare);
    printf("%.4f\n", times[BATCHES / 2]);
    return 0;
}
