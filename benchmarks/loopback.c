/* What the loopback interface allows: processes that give each other their bytes, all at once.
 *
 *     loopback BYTES REPETITIONS [RANKS]      prints the median time of one exchange in µs
 *
 * Every process sends its BYTES to every other and receives theirs, over a connection per pair: the least that has
 * to pass the interface whatever the algorithm, RANKS (RANKS - 1) BYTES, with nobody in the middle, no frames and no
 * checks. An exchange lasts as long as on its slowest process.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

typedef struct {
    int fd;
    char *in;
    size_t sent, got;
} connection;

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A connection of this process with itself, whose ends two processes will share. */
static int connect_pair(int listener, const struct sockaddr_in *address, int ends[2]) {
    int one = 1;
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (const struct sockaddr *)address, sizeof *address)) return -1;
    ends[1] = accept(listener, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(ends[i], IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
    return ends[1] < 0 ? -1 : 0;
}

static void exchange(connection *peers, int count, const char *out, size_t bytes, int patience) {
    struct pollfd polls[MOST];
    for (int i = 0; i < count; i++) peers[i].sent = peers[i].got = 0;
    for (int idle = 0, open = count; open;) {
        int moved = 0;
        open = 0;
        for (int i = 0; i < count; i++) {
            connection *peer = &peers[i];
            ssize_t up = peer->sent < bytes ? send(peer->fd, out + peer->sent, bytes - peer->sent, MSG_DONTWAIT) : 0;
            ssize_t down = peer->got < bytes ? recv(peer->fd, peer->in + peer->got, bytes - peer->got, MSG_DONTWAIT) : 0;
            if (up > 0) peer->sent += (size_t)up;
            if (down > 0) peer->got += (size_t)down;
            moved |= up > 0 || down > 0;
            short events = (short)((peer->got < bytes ? POLLIN : 0) | (peer->sent < bytes ? POLLOUT : 0));
            if (events) polls[open++] = (struct pollfd){peer->fd, events, 0};
        }
        if (moved) idle = 0;
        else if (++idle < patience) sched_yield();
        else poll(polls, (nfds_t)open, 100);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t bytes = strtoull(argv[1], NULL, 10);
    int repetitions = atoi(argv[2]), ranks = argc > 3 ? atoi(argv[3]) : 2;
    if (ranks < 2 || ranks > MOST) return 2;
    static int ends[MOST][MOST];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    bind(listener, (struct sockaddr *)&address, length);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&address, &length);
    for (int a = 0; a < ranks; a++)
        for (int b = a + 1; b < ranks; b++) {
            int pair[2];
            if (connect_pair(listener, &address, pair)) return 1;
            ends[a][b] = pair[0], ends[b][a] = pair[1];
        }
    double *times = mmap(NULL, (size_t)(ranks * repetitions) * sizeof *times, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rank = 0;
    for (int r = 1; r < ranks && rank == 0; r++)
        if (fork() == 0) rank = r;
    connection peers[MOST];
    int count = 0;
    for (int other = 0; other < ranks; other++)
        if (other != rank) {
            peers[count].fd = ends[rank][other];
            peers[count].in = malloc(bytes + 1);
            memset(peers[count++].in, 2, bytes);
        }
    char *out = malloc(bytes + 1);
    memset(out, 1, bytes);
    /* Whoever shares a core with others must not keep it while there is nothing to do. */
    int patience = ranks <= sysconf(_SC_NPROCESSORS_ONLN) ? 500 : 5;
    for (int i = -repetitions / 10; i < repetitions; i++) {
        double start = now_us();
        exchange(peers, count, out, bytes, patience);
        if (i >= 0) times[rank * repetitions + i] = now_us() - start;
    }
    if (rank) return 0;
    while (wait(NULL) > 0) continue;
    for (int r = 1; r < ranks; r++)
        for (int i = 0; i < repetitions; i++)
            if (times[r * repetitions + i] > times[i]) times[i] = times[r * repetitions + i];
    qsort(times, (size_t)repetitions, sizeof *times, compare);
    printf("%.2f\n", times[repetitions / 2]);
    return 0;
}
