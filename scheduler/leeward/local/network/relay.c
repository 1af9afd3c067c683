/* Joins network namespaces: reads IP packets from a TUN device in each, and writes each packet to the device of its
 * receiver after the delay, at the rate and with the losses of this pair. See relay.py.
 *
 *     relay CONFIG STATISTICS
 *
 * CONFIG has a line for each thing, numbered in the order given:
 *     net    <address/24's first three bytes, as 198.18.51> <seed> <largest packet, bytes>
 *     end    <path of the namespace, or -> <device> <last byte of the address>
 *     pipe   <delay ns> <bytes/s, 0: no limit> <loss 0..1> <queue ns, or -> <queue packets, or ->
 *     pair   <end> <end> <pipe>              one direction; a pair that is not named exchanges nothing
 * The devices have to be there. STATISTICS is written when the relay begins, at SIGUSR1 and at SIGTERM, which ends it.
 *
 * A pipe is first in, first out. A packet leaves it when those before it have and its own bytes have taken their time
 * (`sent`), and arrives a delay later (`due`). So each pipe is a list in the order of `due`, and one heap has the pipes
 * that are not empty, by the `due` of their first packet.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum { ENDS = 254, READS = 64, EVENTS = 64, HEADER = 20, SIGNALS = ENDS };
#define SECOND 1000000000LL
/* What a pipe may catch up after it was idle: the relay, too, has to wait for a processor. */
#define CATCH_UP (2 * SECOND / 1000)
/* Bytes of all packets under way, at most. */
#define ROOM (512LL << 20)
/* From one wake to the next, at least; and how much before its time a packet may go: so late it is where it rests. */
#define REST (150 * SECOND / 1000000)
#define EARLY (75 * SECOND / 1000000)

typedef struct packet {
    struct packet *next;
    int64_t sent, due;
    int size;
    unsigned char to;
    long *lost;      /* the counter of its pair: it is lost on its way; NULL: it arrives */
    unsigned char bytes[];
} packet;

typedef struct {
    int64_t delay, queue_time, free_at; /* free_at: when the last packet has left */
    double rate, loss;                  /* bytes/s */
    long queue_packets, waiting;        /* waiting: packets that have not left yet */
    packet *first, *last, *leaving;     /* leaving: the first that had not left when this was last looked at */
    uint64_t random;
    int place;                          /* in the heap */
} pipe_;

typedef struct { int pipe; long packets, bytes, dropped, lost; } pair;
typedef struct { char path[256], device[IFNAMSIZ]; int address, fd; } end;

static end ends[ENDS];
static pipe_ *pipes, **heap;
static pair pairs[ENDS][ENDS];
static unsigned char of_address[256]; /* number of the end, ENDS: none */
static int n_ends, n_pipes, n_heap, mtu, realtime;
static uint32_t net;
static uint64_t seed;
static long n_packets, n_strange, n_failed, n_wakes;
static int64_t room = ROOM;
static unsigned char incoming[65536];

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

static uint64_t mixed(uint64_t value) { /* splitmix64 */
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static double chance(pipe_ *p) { /* 0 <= chance < 1, the same ones for the same seed and pipe */
    p->random += 0x9e3779b97f4a7c15u;
    return (mixed(p->random) >> 11) * 0x1p-53;
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

static int send_to(int to, const unsigned char *bytes, int size) {
    int sent = write(ends[to].fd, bytes, size) == size;
    n_failed += !sent;
    return sent;
}

static void deliver(int64_t now) {
    while (n_heap > 0 && heap[0]->first->due <= now + EARLY) {
        pipe_ *p = heap[0];
        packet *it = p->first;
        if (it->lost != NULL)
            ++*it->lost;
        else
            send_to(it->to, it->bytes, it->size);
        p->first = it->next;
        if (p->leaving == it) {
            p->leaving = it->next;
            p->waiting--;
        }
        room += it->size + (int64_t)sizeof *it;
        free(it);
        if (p->first == NULL) {
            p->last = NULL;
            if (--n_heap > 0)
                put(0, heap[n_heap]);
        }
        sink(0);
    }
}

static void let_leave(pipe_ *p, int64_t now) {
    for (; p->leaving != NULL && p->leaving->sent <= now; p->leaving = p->leaving->next)
        p->waiting--;
}

/* A packet enters its pipe: dropped if the queue is full, at once through if nothing holds it up. */
static void enter(int from, int to, int size, int64_t now) {
    pair *between = &pairs[from][to];
    pipe_ *p = &pipes[between->pipe];
    int64_t begin = p->free_at > now - CATCH_UP ? p->free_at : now - CATCH_UP, took = 0;
    int lost = p->loss > 0 && chance(p) < p->loss;
    if (p->rate > 0)
        took = (int64_t)(size * (double)SECOND / p->rate);
    else
        begin = now;
    let_leave(p, now);
    if (begin - now > p->queue_time || p->waiting >= p->queue_packets || room < size) {
        between->dropped++;
        return;
    }
    between->packets++;
    between->bytes += size;
    p->free_at = begin + took;
    int64_t sent = p->free_at > now ? p->free_at : now;
    if (sent + p->delay <= now && p->first == NULL) {
        if (lost)
            between->lost++;
        else
            send_to(to, incoming, size);
        return;
    }
    packet *it = malloc(sizeof *it + size);
    if (it == NULL)
        fail("no memory for a packet");
    *it = (packet){.sent = sent, .due = sent + p->delay, .size = size, .to = to, .lost = lost ? &between->lost : NULL};
    memcpy(it->bytes, incoming, size);
    room -= size + (int64_t)sizeof *it;
    if (sent > now) {
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

/* Reads what there is, up to a bound, so that what is due meanwhile does not wait long; 0 when the device is gone. */
static int take(int from) {
    end *e = &ends[from];
    for (int n = 0; n < READS; n++) {
        int size = read(e->fd, incoming, sizeof incoming);
        if (size < 0)
            return errno == EAGAIN || errno == EINTR || errno == EIO;
        uint32_t source, target;
        if (size < HEADER || size > mtu || incoming[0] >> 4 != 4) { /* IPv6 looks for its neighbours */
            n_strange++;
            continue;
        }
        memcpy(&source, incoming + 12, sizeof source);
        memcpy(&target, incoming + 16, sizeof target);
        source = ntohl(source);
        target = ntohl(target);
        int to = of_address[target & 255];
        /* nobody sends in another's name, so that nothing from outside passes through */
        if (source != (net | e->address) || target >> 8 != net >> 8 || to == ENDS || pairs[from][to].pipe < 0) {
            n_strange++;
            continue;
        }
        n_packets++;
        enter(from, to, size, now_ns());
    }
    return 1;
}

/* ---- statistics */

static double seconds(struct timeval time) { return time.tv_sec + time.tv_usec / 1e6; }

static void write_statistics(const char *path) {
    static long number;
    struct rusage used;
    char part[4096];
    getrusage(RUSAGE_SELF, &used);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "w");
    if (file == NULL)
        fail("writing %s", part);
    fprintf(file, "{\"number\": %ld, \"packets\": %ld, \"strange\": %ld, \"failed\": %ld, \"wakes\": %ld, ", ++number,
            n_packets, n_strange, n_failed, n_wakes);
    fprintf(file, "\"processor_s\": %.6f, \"realtime\": %s, \"pairs\": [",
            seconds(used.ru_utime) + seconds(used.ru_stime), realtime ? "true" : "false");
    const char *comma = "";
    for (int a = 0; a < n_ends; a++)
        for (int b = 0; b < n_ends; b++) {
            pair *it = &pairs[a][b];
            if (it->packets + it->dropped == 0)
                continue;
            fprintf(file, "%s\n{\"from\": %d, \"to\": %d, \"packets\": %ld, \"bytes\": %ld", comma, a, b,
                    it->packets, it->bytes);
            fprintf(file, ", \"dropped\": %ld, \"lost\": %ld}", it->dropped, it->lost);
            comma = ",";
        }
    fputs("]}\n", file);
    if (fclose(file) != 0 || rename(part, path) != 0)
        fail("writing %s", path);
}

/* ---- the beginning */

static long number_or(const char *text, long otherwise) { return strcmp(text, "-") == 0 ? otherwise : atol(text); }

static void read_line(const char *line) {
    char word[16], time[32], packets[32];
    int a, b, c, d;
    pipe_ p = {.rate = 0};
    end e = {.fd = -1};
    if (sscanf(line, "net %d.%d.%d %lu %d", &a, &b, &c, &seed, &mtu) == 5) {
        net = (uint32_t)a << 24 | (uint32_t)b << 16 | (uint32_t)c << 8;
    } else if (sscanf(line, "end %255s %15s %d", e.path, e.device, &e.address) == 3 && n_ends < ENDS &&
               e.address > 0 && e.address < 255) {
        of_address[e.address] = n_ends;
        ends[n_ends++] = e;
    } else if (sscanf(line, "pipe %ld %lf %lf %31s %31s", &p.delay, &p.rate, &p.loss, time, packets) == 5) {
        p.queue_time = number_or(time, INT64_MAX);
        p.queue_packets = number_or(packets, INT64_MAX);
        p.random = mixed(seed + 0x9e3779b97f4a7c15u * (n_pipes + 1));
        p.free_at = INT64_MIN / 2;
        if ((pipes = realloc(pipes, (n_pipes + 1) * sizeof *pipes)) == NULL)
            fail("no memory for pipes");
        pipes[n_pipes++] = p;
    } else if (sscanf(line, "pair %d %d %d", &a, &b, &d) == 3 && a >= 0 && a < n_ends && b >= 0 && b < n_ends &&
               d >= 0 && d < n_pipes) {
        pairs[a][b].pipe = d;
    } else if (sscanf(line, "%15s", word) == 1) {
        errno = EINVAL;
        fail("not understood: %s", line);
    }
}

static void read_config(const char *path) {
    char line[1024];
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail("reading %s", path);
    memset(of_address, ENDS, sizeof of_address);
    for (int a = 0; a < ENDS; a++)
        for (int b = 0; b < ENDS; b++)
            pairs[a][b].pipe = -1;
    while (fgets(line, sizeof line, file) != NULL)
        read_line(line);
    fclose(file);
    if ((heap = calloc(n_pipes + 1, sizeof *heap)) == NULL)
        fail("no memory for the heap");
}

static void open_device(end *e, int home) {
    struct ifreq wanted = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int space = strcmp(e->path, "-") == 0 ? dup(home) : open(e->path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0)
        fail("entering %s", e->path);
    close(space);
    strcpy(wanted.ifr_name, e->device);
    e->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (e->fd < 0 || ioctl(e->fd, TUNSETIFF, &wanted) != 0)
        fail("device %s in %s", e->device, e->path);
}

static void watch(int poll, int fd, uint32_t number) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0)
        fail("epoll");
}

/* Waits for packets until the first one under way is due. Not before the rest is over: a wake costs more than a packet,
 * so where there are many, several share one. */
static int wait_for(int poll, struct epoll_event *events, int most, int64_t rested) {
    struct timespec until = {rested / SECOND, rested % SECOND}, time = {0};
    int64_t now = now_ns(), due = n_heap > 0 ? heap[0]->first->due - EARLY : INT64_MAX;
    if (now < rested) {
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        now = rested;
    }
    if (due > now && due != INT64_MAX) {
        time.tv_sec = (due - now) / SECOND;
        time.tv_nsec = (due - now) % SECOND;
    }
    return epoll_pwait2(poll, events, most, n_heap > 0 ? &time : NULL, NULL);
}

static void run(int poll, int signals, const char *statistics) {
    struct epoll_event events[EVENTS];
    struct signalfd_siginfo signal;
    int64_t woken = 0;
    for (int left = n_ends; left > 0;) {
        int n = wait_for(poll, events, EVENTS, woken + REST);
        woken = now_ns();
        n_wakes++;
        deliver(woken);
        for (int i = 0; i < n; i++) {
            uint32_t what = events[i].data.u32;
            if (what < ENDS && !take(what)) { /* its device was removed */
                epoll_ctl(poll, EPOLL_CTL_DEL, ends[what].fd, NULL);
                left--;
            } else if (what == SIGNALS && read(signals, &signal, sizeof signal) == sizeof signal) {
                write_statistics(statistics);
                if (signal.ssi_signo != SIGUSR1)
                    exit(0);
            }
            deliver(now_ns());
        }
    }
}

int main(int n, char **arguments) {
    sigset_t handled;
    struct sched_param first = {.sched_priority = 1};
    if (n != 3) {
        fputs("usage: relay CONFIG STATISTICS\n", stderr);
        return 2;
    }
    read_config(arguments[1]);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < n_ends; i++)
        open_device(&ends[i], home);
    if (setns(home, CLONE_NEWNET) != 0)
        fail("going home");
    int poll = epoll_create1(EPOLL_CLOEXEC);
    sigemptyset(&handled);
    for (const int *it = (const int[]){SIGUSR1, SIGTERM, SIGINT, 0}; *it != 0; it++)
        sigaddset(&handled, *it);
    sigprocmask(SIG_BLOCK, &handled, NULL);
    int signals = signalfd(-1, &handled, SFD_NONBLOCK | SFD_CLOEXEC);
    for (int i = 0; i < n_ends; i++)
        watch(poll, ends[i].fd, i);
    watch(poll, signals, SIGNALS);
    /* before all others, else their work would show as a delay of the network; it is idle but for microseconds */
    realtime = sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) == 0;
    write_statistics(arguments[2]);
    run(poll, signals, arguments[2]);
}
