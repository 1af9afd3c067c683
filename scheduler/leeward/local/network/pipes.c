/* The first part of the relay: packets go through pipes, one after the other, and come out at an end. See relay.c.
 *
 * A pipe is first in, first out. A packet leaves it when those before it have and its own bytes have taken their time
 * (`sent`), and is at its other end a delay later (`due`), where it enters the next pipe of its way. So each pipe is a
 * list in the order of `due`, and one heap has the pipes that are not empty, by the `due` of their first packet. The
 * next pipe counts from `due`, not from when the relay came to it: the relay's own waiting does not add up.
 *
 * The rate of a pipe with sigma > 0 is rate * 2^(sigma Z) in each interval, Z normal: a pure function of the seed, the
 * pipe's number and the interval's, so the same seed gives the same rates, whatever is sent. plan.py has it, too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ENDS = 254, PIPES = 64, LARGEST = 65536 }; /* PIPES: of a way, at most */
#define SECOND 1000000000LL
#define GOLDEN 0x9e3779b97f4a7c15u
/* What a pipe may catch up after it was idle: the relay, too, has to wait for a processor. */
#define CATCH_UP (2 * SECOND / 1000)
/* Bytes of all packets under way, at most. */
#define ROOM (512LL << 20)
/* How much before its time a packet may go. */
#define EARLY (75 * SECOND / 1000000)

/* The numbers of the pipes from one end to another. Each list is there once and stays, as packets refer to it. */
typedef struct way {
    struct way *next;
    int length, pipes[];
} way;

typedef struct packet {
    struct packet *next;
    int64_t sent, due;
    const way *way;
    int hop, size, lost; /* hop: which pipe of its way it is in; lost: it is gone when it is due */
    unsigned char from, to, bytes[];
} packet;

typedef struct {
    int64_t delay, queue_time, every;
    double rate, loss, sigma;           /* rate: bytes/s; the median, with sigma */
    long queue_packets, waiting;        /* waiting: packets that have not left yet */
    int64_t free_at, latest;            /* free_at: when the last packet has left; latest: when one came last */
    packet *first, *last, *leaving;     /* leaving: the first that had not left when this was last looked at */
    uint64_t random;
    int64_t interval;
    double rate_now;                    /* in this interval */
    int place;                          /* in the heap */
    long packets, bytes, dropped, lost;
} pipe_;

typedef struct route { struct route *next; int port; const way *way; } route;
typedef struct { const way *way; route *routes; long packets, bytes, dropped, lost; } pair;
typedef struct { char path[256], device[IFNAMSIZ]; int address, fd; } end;

static end ends[ENDS];
static pipe_ *pipes, **heap;
static pair pairs[ENDS][ENDS];
static way *ways;
static int n_pipes, n_heap;
static uint64_t seed;
static long n_failed;
static int64_t room = ROOM, began;
static union { packet it; unsigned char bytes[sizeof(packet) + LARGEST]; } incoming; /* the packet just read */

static void fail(const char *form, ...) {
    va_list arguments;
    va_start(arguments, form);
    fputs("relay: ", stderr);
    vfprintf(stderr, form, arguments);
    fprintf(stderr, " (%s)\n", strerror(errno));
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * SECOND + at.tv_nsec;
}

/* ---- chance */

static uint64_t mixed(uint64_t value) { /* splitmix64 */
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static uint64_t seed_of(int number) { return mixed(seed + GOLDEN * (number + 1)); }

static double share(uint64_t value) { return (mixed(value) >> 11) * 0x1p-53; } /* 0 <= share < 1 */

/* The same ones for the same seed and pipe. */
static double chance(pipe_ *p) { return share(p->random += GOLDEN); }

static double normal(int number, int64_t interval) {
    uint64_t state = mixed(seed_of(number) + interval);
    return sqrt(-2 * log1p(-share(state + GOLDEN))) * cos(2 * M_PI * share(state + 2 * GOLDEN));
}

static double rate_at(pipe_ *p, int64_t at) {
    int64_t interval = p->sigma > 0 ? (at - began) / p->every : 0;
    if (interval != p->interval) {
        p->interval = interval;
        p->rate_now = p->rate * exp2(p->sigma * normal(p - pipes, interval));
    }
    return p->rate_now;
}

/* ---- the heap of pipes */

static void put(int at, pipe_ *p) { heap[at] = p; p->place = at; }

static int earlier(int a, int b) { return heap[a]->first->due < heap[b]->first->due; }

static void swap(int a, int b) {
    pipe_ *p = heap[a];
    put(a, heap[b]);
    put(b, p);
}

static void sink(int at) {
    for (int child; (child = 2 * at + 1) < n_heap; at = child) {
        if (child + 1 < n_heap && earlier(child + 1, child))
            child++;
        if (!earlier(child, at))
            return;
        swap(at, child);
    }
}

static void add(pipe_ *p) {
    int at = n_heap++;
    for (put(at, p); at > 0 && earlier(at, (at - 1) / 2); at = (at - 1) / 2)
        swap(at, (at - 1) / 2);
}

/* ---- packets */

static const way *way_of(const long *numbers, int length) {
    way *it;
    for (it = ways; it != NULL; it = it->next) {
        int same = 0;
        while (it->length == length && same < length && it->pipes[same] == numbers[same])
            same++;
        if (same == length)
            return it;
    }
    if ((it = malloc(sizeof *it + length * sizeof *it->pipes)) == NULL)
        fail("no memory for a way");
    *it = (way){.next = ways, .length = length};
    for (int i = 0; i < length; i++)
        it->pipes[i] = numbers[i];
    return ways = it;
}

static pair *pair_of(const packet *it) { return &pairs[it->from][it->to]; }

static void release(packet *it) {
    if (it == &incoming.it)
        return;
    room += it->size + (int64_t)sizeof *it;
    free(it);
}

static packet *kept(packet *it) {
    if (it != &incoming.it)
        return it;
    packet *copy = malloc(sizeof *it + it->size);
    if (copy == NULL)
        fail("no memory for a packet");
    memcpy(copy, it, sizeof *it);
    memcpy(copy->bytes, it->bytes, it->size);
    room -= it->size + (int64_t)sizeof *it;
    return copy;
}

static void lose(pipe_ *p, packet *it) {
    p->lost++;
    pair_of(it)->lost++;
    release(it);
}

static void let_leave(pipe_ *p, int64_t now) {
    for (; p->leaving != NULL && p->leaving->sent <= now; p->leaving = p->leaving->next)
        p->waiting--;
}

static void hold(pipe_ *p, packet *it, int64_t now) {
    it->next = NULL;
    if (it->sent > now) {
        p->waiting++;
        if (p->leaving == NULL)
            p->leaving = it;
    }
    if (p->last != NULL)
        p->last->next = it;
    p->last = it;
    if (p->first == NULL) {
        p->first = it;
        add(p);
    }
}

/* A packet enters a pipe: true if nothing holds it up there; else the pipe has it, or it was dropped or lost. */
static int enter(pipe_ *p, packet *it, int64_t now) {
    now = p->latest = now > p->latest ? now : p->latest;
    int64_t begin = p->free_at > now - CATCH_UP ? p->free_at : now - CATCH_UP, took = 0;
    int lost = p->loss > 0 && chance(p) < p->loss;
    if (p->rate > 0)
        took = (int64_t)(it->size * (double)SECOND / rate_at(p, begin > now ? begin : now));
    else
        begin = now;
    let_leave(p, now);
    if (begin - now > p->queue_time || p->waiting >= p->queue_packets || room < it->size) {
        p->dropped++;
        pair_of(it)->dropped++;
        release(it);
        return 0;
    }
    p->packets++;
    p->bytes += it->size;
    if (it->hop == 0) {
        pair_of(it)->packets++;
        pair_of(it)->bytes += it->size;
    }
    p->free_at = begin + took;
    int64_t sent = p->free_at > now ? p->free_at : now;
    if (sent + p->delay <= now && p->first == NULL) {
        if (lost)
            lose(p, it);
        return !lost;
    }
    it = kept(it);
    it->sent = sent;
    it->due = sent + p->delay;
    it->lost = lost;
    hold(p, it, now);
    return 0;
}

/* From the pipe `hop` of its way on, until one holds it up. */
static void travel(packet *it, int64_t now) {
    for (; it->hop < it->way->length; it->hop++)
        if (!enter(&pipes[it->way->pipes[it->hop]], it, now))
            return;
    n_failed += write(ends[it->to].fd, it->bytes, it->size) != it->size;
    release(it);
}

/* The packet that was just read. Field by field: its bytes begin in what would else be the end of the structure. */
static void set_out(int size, int from, int to, const way *way, int64_t now) {
    packet *it = &incoming.it;
    it->size = size;
    it->from = from;
    it->to = to;
    it->way = way;
    it->hop = 0;
    travel(it, now);
}

/* Takes the first packet out of the first pipe of the heap. */
static packet *taken(void) {
    pipe_ *p = heap[0];
    packet *it = p->first;
    p->first = it->next;
    if (p->leaving == it) {
        p->leaving = it->next;
        p->waiting--;
    }
    if (p->first == NULL) {
        p->last = NULL;
        if (--n_heap > 0)
            put(0, heap[n_heap]);
    }
    sink(0);
    return it;
}

static void deliver(int64_t now) {
    while (n_heap > 0 && heap[0]->first->due <= now + EARLY) {
        pipe_ *p = heap[0];
        packet *it = taken();
        if (it->lost) {
            lose(p, it);
            continue;
        }
        it->hop++;
        travel(it, it->due);
    }
}
