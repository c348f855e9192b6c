/* Threads that share the chains of a block, among themselves and with other processes: whoever is free takes the next.
 *
 * A chain's result does not depend on who solves it, so nobody needs a share of his own: a helper that is slow to wake
 * finds less left, and a block too small to be handed over is solved by the thread that brought it. Helpers wait for the
 * next block awake for a while, because blocks come at intervals of some 100 µs and waking a thread takes nearly as
 * long. Nothing here touches Python. */
#ifndef PYCOBRE_LP_TEAM_H
#define PYCOBRE_LP_TEAM_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "lp_chain.h"

enum { AWAKE_NS = 300000 }; /* how long a helper looks for work before it sleeps */
enum { PATIENCE_MS = 50 };  /* how long the leader sleeps before it looks at signals */

typedef enum { CHAIN_DONE, CHAIN_FAILED, CHAIN_NO_MEMORY } chain_end;

/* Chain i from its beginning, or from the opening whose run the recovery has solved. */
static chain_end run_chain(lp_session *s, const lp_model *model, const lp_block *b, int32_t i, bool resumed) {
    if (!resumed && ((s->model != model && !session_open(s, model)) || !chain_begin(s, b, i)))
        return CHAIN_NO_MEMORY;
    for (int32_t j = resumed ? s->opening : 0; j < b->openings; j++, resumed = false) {
        const opening_end end = solve_opening(s, b, j, resumed);
        if (end != OPENING_SOLVED)
            return end == OPENING_FAILED ? CHAIN_FAILED : CHAIN_NO_MEMORY;
    }
    if (b->taken != NULL)
        b->taken[i] = 1;
    return CHAIN_DONE;
}

/* The chain that a turn brings: itself or, where the block is shared with other processes, the next that none of them
 * has begun; the number of chains when there is none left. */
static int32_t chain_of_turn(const lp_block *b, int32_t turn) {
    if (b->dealt == NULL)
        return turn;
    const int64_t next = atomic_fetch_add(b->dealt, 1);
    return next < b->chains ? (int32_t)next : b->chains;
}

typedef struct lp_team lp_team;

typedef struct {
    lp_team *team;
    lp_session *session;
    pthread_t thread;
    chain_end how; /* how its last chain of this block ended */
} team_member;

struct lp_team {
    int32_t size; /* members, the leader first, who brings the blocks and has no thread here */
    team_member *member;
    bool awake; /* there is a core for each: wait awake */
    const lp_model *model;
    const lp_block *block;
    _Atomic uint64_t word; /* number of the block << 32 | the next turn */
    _Atomic uint32_t end;
    _Atomic int32_t finished, sleepers;
    _Atomic bool leader_sleeps, closing;
    pthread_mutex_t mutex;
    pthread_cond_t work, done;
};

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void breathe(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* The next turn at block `number`; false when there is none left. */
static bool take_turn(lp_team *team, uint32_t number, int32_t *turn) {
    uint64_t word = atomic_load(&team->word);
    for (;;) {
        const uint32_t next = (uint32_t)word;
        if ((uint32_t)(word >> 32) != number || next >= atomic_load(&team->end))
            return false;
        if (atomic_compare_exchange_weak(&team->word, &word, word + 1)) {
            *turn = (int32_t)next;
            return true;
        }
    }
}

static void finish_turn(lp_team *team) {
    atomic_fetch_add(&team->finished, 1);
    if (atomic_load(&team->leader_sleeps)) {
        pthread_mutex_lock(&team->mutex);
        pthread_cond_signal(&team->done);
        pthread_mutex_unlock(&team->mutex);
    }
}

/* Solve one chain of block `number`; false when this member can do no more for it. */
static bool solve_next(team_member *own, uint32_t number) {
    lp_team *team = own->team;
    int32_t turn;
    if (!take_turn(team, number, &turn))
        return false;
    const int32_t chain = chain_of_turn(team->block, turn);
    const bool found = chain < team->block->chains;
    if (found)
        own->how = run_chain(own->session, team->model, team->block, chain, false);
    finish_turn(team);
    return found && own->how == CHAIN_DONE;
}

static bool has_work(lp_team *team, uint32_t seen) {
    return atomic_load(&team->closing) || (uint32_t)(atomic_load(&team->word) >> 32) != seen;
}

/* Wait for another block than `seen`; false when the team ends. */
static bool wait_for_work(lp_team *team, uint32_t seen) {
    for (const int64_t until = team->awake ? now_ns() + AWAKE_NS : 0; now_ns() < until; sched_yield())
        for (int32_t k = 0; k < 64; k++, breathe())
            if (has_work(team, seen))
                return !atomic_load(&team->closing);
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&team->sleepers, 1);
    while (!has_work(team, seen))
        pthread_cond_wait(&team->work, &team->mutex);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->mutex);
    return !atomic_load(&team->closing);
}

static void *help(void *argument) {
    team_member *own = argument;
    lp_team *team = own->team;
    uint32_t seen = 0;
    while (wait_for_work(team, seen)) {
        seen = (uint32_t)(atomic_load(&team->word) >> 32);
        while (solve_next(own, seen))
            ;
    }
    return NULL;
}

/* Offer turns `begin` to `end` at a block to everybody; the sessions are ready for it. */
static void team_offer(lp_team *team, const lp_model *model, const lp_block *block, int32_t begin, int32_t end) {
    const uint64_t number = (atomic_load(&team->word) >> 32) + 1;
    team->model = model;
    team->block = block;
    for (int32_t k = 0; k < team->size; k++)
        team->member[k].how = CHAIN_DONE;
    atomic_store(&team->finished, 0);
    atomic_store(&team->end, (uint32_t)end);
    atomic_store(&team->word, (number & UINT32_MAX) << 32 | (uint32_t)begin);
    if (atomic_load(&team->sleepers) > 0) {
        pthread_mutex_lock(&team->mutex);
        pthread_cond_broadcast(&team->work);
        pthread_mutex_unlock(&team->mutex);
    }
}

/* Let nobody take another turn; returns the first that was not taken. */
static int32_t team_close_offer(lp_team *team) {
    const uint32_t end = atomic_load(&team->end);
    const uint32_t next = (uint32_t)atomic_fetch_or(&team->word, UINT32_MAX);
    return (int32_t)(next < end ? next : end);
}

/* Wait a while for `count` turns to be finished; false where they are not yet. */
static bool team_wait(lp_team *team, int32_t count) {
    for (const int64_t until = team->awake ? now_ns() + AWAKE_NS : 0; now_ns() < until;)
        for (int32_t k = 0; k < 64; k++, breathe())
            if (atomic_load(&team->finished) == count)
                return true;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&team->mutex);
    atomic_store(&team->leader_sleeps, true);
    for (int late = 0; late == 0 && atomic_load(&team->finished) != count;)
        late = pthread_cond_timedwait(&team->done, &team->mutex, &until);
    atomic_store(&team->leader_sleeps, false);
    pthread_mutex_unlock(&team->mutex);
    return atomic_load(&team->finished) == count;
}

/* End the threads; all are idle. */
static void team_free(lp_team *team) {
    if (team == NULL)
        return;
    atomic_store(&team->closing, true);
    pthread_mutex_lock(&team->mutex);
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->mutex);
    for (int32_t k = 1; k < team->size; k++)
        pthread_join(team->member[k].thread, NULL);
    pthread_mutex_destroy(&team->mutex);
    pthread_cond_destroy(&team->work);
    pthread_cond_destroy(&team->done);
    free(team->member);
    free(team);
}

/* A team of the first session and helpers for the others; NULL when there is no memory or no thread to be had. */
static lp_team *team_new(lp_session **sessions, int32_t size, bool awake) {
    lp_team *team = calloc(1, sizeof *team);
    team_member *member = calloc((size_t)size, sizeof *member);
    if (team == NULL || member == NULL) {
        free(team), free(member);
        return NULL;
    }
    team->member = member;
    team->awake = awake;
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->work, NULL);
    pthread_cond_init(&team->done, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the interpreter's threads */
    bool started = true;
    for (; started && team->size < size; team->size += started) {
        team_member *each = &member[team->size];
        *each = (team_member){.team = team, .session = sessions[team->size]};
        started = team->size == 0 || pthread_create(&each->thread, NULL, help, each) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        return team;
    team_free(team);
    return NULL;
}

#endif
