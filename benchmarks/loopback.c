/* What the loopback interface allows: two processes exchange as many bytes with each other, both ways at once.
 *
 *     loopback BYTES REPETITIONS      prints the median time of one exchange in µs
 *
 * No frames, no checks, one connection, never asleep for long: the floor under any collective of two ranks.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void exchange(int fd, const char *out, char *in, size_t bytes) {
    size_t sent = 0, got = 0;
    for (int idle = 0; sent < bytes || got < bytes;) {
        ssize_t up = sent < bytes ? send(fd, out + sent, bytes - sent, MSG_DONTWAIT) : 0;
        ssize_t down = got < bytes ? recv(fd, in + got, bytes - got, MSG_DONTWAIT) : 0;
        if (up > 0) sent += (size_t)up;
        if (down > 0) got += (size_t)down;
        if (up > 0 || down > 0) idle = 0;
        else if (++idle < 500) sched_yield();
        else {
            struct pollfd one = {fd, (short)((got < bytes ? POLLIN : 0) | (sent < bytes ? POLLOUT : 0)), 0};
            poll(&one, 1, 100);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    size_t bytes = strtoull(argv[1], NULL, 10);
    int repetitions = atoi(argv[2]);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    bind(listener, (struct sockaddr *)&address, length);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&address, &length);
    pid_t child = fork();
    if (child == 0) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, length)) return 1;
    } else {
        fd = accept(listener, NULL, NULL);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    char *out = malloc(bytes + 1), *in = malloc(bytes + 1);
    memset(out, 1, bytes), memset(in, 2, bytes);
    double *times = malloc((size_t)repetitions * sizeof *times);
    for (int i = -repetitions / 10; i < repetitions; i++) {
        double start = now_us();
        exchange(fd, out, in, bytes);
        if (i >= 0) times[i] = now_us() - start;
    }
    if (child == 0) return 0;
    wait(NULL);
    qsort(times, (size_t)repetitions, sizeof *times, compare);
    printf("%.2f\n", times[repetitions / 2]);
    return 0;
}
