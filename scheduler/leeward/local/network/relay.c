/* Joins network namespaces: reads IP packets from a TUN device in each, and writes each packet to the device of its
 * receiver after the delay, at the rate and with the losses of its way. emulation.py compiles it behind pipes.c.
 *
 *     relay CONFIG STATISTICS [CONTROL]
 *
 * CONFIG has a line for each thing, numbered in the order given:
 *     net    <address/24's first three bytes, as 198.18.51> <seed> <largest packet, bytes>
 *     end    <path of the namespace, or -> <device> <last byte of the address>
 *     pipe   <delay ns> <bytes/s, 0: no limit> <loss 0..1> <queue ns, or -> <queue packets, or -> <sigma> <every ns>
 *     pair   <end> <end> <pipe>...           one direction; a pair that is not named exchanges nothing
 * The devices have to be there. STATISTICS is written when the relay begins, at SIGUSR1 and at SIGTERM, which ends it.
 *
 * CONTROL is the path of a Unix datagram socket that the relay makes, and removes when it ends. A datagram has lines:
 *     route   <end> <end> <port> <pipe>...   TCP packets of this direction from or to the port go this way
 *     unroute <end> <end> <port>             they go the way of the pair again
 * A line that is not understood is counted, and written to the standard error.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { READS = 64, EVENTS = 64, HEADER = 20, SIGNALS = ENDS, CONTROL };
/* From one wake to the next, at least: so late is a packet, or EARLY, where the relay rests. */
#define REST (150 * SECOND / 1000000)

static unsigned char of_address[256]; /* number of the end, ENDS: none */
static int n_ends, mtu, realtime, control = -1;
static uint32_t net;
static long n_packets, n_strange, n_wakes, n_routes, n_refused;
static const char *control_path;

/* ---- routes */

/* Numbers that fill a text; how many, -1 if it is anything else. */
static int read_numbers(const char *text, long *numbers, int most) {
    char *after;
    for (int n = 0;; n++, text = after) {
        text += strspn(text, " \n");
        if (*text == '\0')
            return n;
        if (n == most)
            return -1;
        numbers[n] = strtol(text, &after, 10);
        if (after == text)
            return -1;
    }
}

static const way *checked_way(const long *numbers, int length) {
    if (length < 1)
        return NULL;
    for (int i = 0; i < length; i++)
        if (numbers[i] < 0 || numbers[i] >= n_pipes)
            return NULL;
    return way_of(numbers, length);
}

static pair *checked_pair(long from, long to) {
    return from >= 0 && from < n_ends && to >= 0 && to < n_ends && from != to ? &pairs[from][to] : NULL;
}

/* Without a way: removes the route. */
static void set_route(pair *between, int port, const way *way) {
    route **at = &between->routes, *it;
    while (*at != NULL && (*at)->port != port)
        at = &(*at)->next;
    it = *at;
    if (way == NULL) {
        if (it != NULL) {
            *at = it->next;
            free(it);
            n_routes--;
        }
        return;
    }
    if (it == NULL) {
        if ((it = *at = calloc(1, sizeof *it)) == NULL)
            fail("no memory for a route");
        n_routes++;
    }
    *it = (route){.next = it->next, .port = port, .way = way};
}

/* One line of a datagram; false if it is not understood. */
static int obey(const char *line) {
    long numbers[3 + PIPES];
    int new = strncmp(line, "route ", 6) == 0, old = strncmp(line, "unroute ", 8) == 0;
    int n = new || old ? read_numbers(line + (new ? 6 : 8), numbers, 3 + PIPES) : -1;
    pair *between = n >= 3 ? checked_pair(numbers[0], numbers[1]) : NULL;
    const way *there = new && n > 3 ? checked_way(numbers + 3, n - 3) : NULL;
    if (between == NULL || between->way == NULL || numbers[2] < 1 || numbers[2] > 65535 || (new ? !there : n != 3))
        return 0;
    set_route(between, numbers[2], there);
    return 1;
}

static void read_control(void) {
    static char text[LARGEST + 1];
    for (ssize_t size; (size = recv(control, text, LARGEST, MSG_DONTWAIT)) >= 0;) {
        char *rest = text;
        text[size] = '\0';
        for (char *zero; (zero = memchr(text, '\0', size)) != NULL;)
            *zero = '?'; /* else it would hide the lines behind it */
        for (char *line; (line = strsep(&rest, "\n")) != NULL;)
            if (*line != '\0' && !obey(line)) {
                n_refused++;
                fprintf(stderr, "relay: not understood: %.200s\n", line);
            }
    }
}

static void remove_control(void) { unlink(control_path); }

static void open_control(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        fail("control socket %s", path);
    }
    strcpy(address.sun_path, control_path = path);
    unlink(path);
    control = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (control < 0 || bind(control, (struct sockaddr *)&address, sizeof address) != 0)
        fail("control socket %s", path);
    atexit(remove_control);
}

/* ---- packets */

/* By the ports of a TCP packet, if the pair has routes; of a fragment, only the first has ports. */
static const way *way_for(const pair *between, const unsigned char *bytes, int size) {
    int header = (bytes[0] & 15) * 4, fragment = (bytes[6] & 31) << 8 | bytes[7];
    if (between->routes == NULL || bytes[9] != IPPROTO_TCP || fragment != 0 || header < HEADER || size < header + 4)
        return between->way;
    int source = bytes[header] << 8 | bytes[header + 1], target = bytes[header + 2] << 8 | bytes[header + 3];
    for (const route *it = between->routes; it != NULL; it = it->next)
        if (it->port == source || it->port == target)
            return it->way;
    return between->way;
}

/* Reads what there is, up to a bound, so that what is due meanwhile does not wait long; 0 when the device is gone. */
static int take(int from) {
    end *e = &ends[from];
    unsigned char *bytes = incoming.it.bytes;
    for (int n = 0; n < READS; n++) {
        int size = read(e->fd, bytes, LARGEST);
        if (size < 0)
            return errno == EAGAIN || errno == EINTR || errno == EIO;
        uint32_t source, target;
        if (size < HEADER || size > mtu || bytes[0] >> 4 != 4) { /* IPv6 looks for its neighbours */
            n_strange++;
            continue;
        }
        memcpy(&source, bytes + 12, sizeof source);
        memcpy(&target, bytes + 16, sizeof target);
        source = ntohl(source);
        target = ntohl(target);
        int to = of_address[target & 255];
        /* nobody sends in another's name, so that nothing from outside passes through */
        if (source != (net | e->address) || target >> 8 != net >> 8 || to == ENDS || pairs[from][to].way == NULL) {
            n_strange++;
            continue;
        }
        n_packets++;
        set_out(size, from, to, way_for(&pairs[from][to], bytes, size), now_ns());
    }
    return 1;
}

/* ---- statistics */

static double seconds(struct timeval time) { return time.tv_sec + time.tv_usec / 1e6; }

static void write_counters(FILE *file, long packets, long bytes, long dropped, long lost) {
    fprintf(file, "\"packets\": %ld, \"bytes\": %ld, \"dropped\": %ld, \"lost\": %ld}", packets, bytes, dropped, lost);
}

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
    fprintf(file, "\"processor_s\": %.6f, \"realtime\": %s, \"began_ns\": %ld, \"routes\": %ld, \"refused\": %ld, ",
            seconds(used.ru_utime) + seconds(used.ru_stime), realtime ? "true" : "false", began, n_routes, n_refused);
    const char *comma = "";
    fputs("\"pairs\": [", file);
    for (int a = 0; a < n_ends; a++)
        for (int b = 0; b < n_ends; b++) {
            pair *it = &pairs[a][b];
            if (it->packets + it->dropped == 0)
                continue;
            fprintf(file, "%s\n{\"from\": %d, \"to\": %d, ", comma, a, b);
            write_counters(file, it->packets, it->bytes, it->dropped, it->lost);
            comma = ",";
        }
    comma = "";
    fputs("], \"pipes\": [", file);
    for (int n = 0; n < n_pipes; n++) {
        pipe_ *it = &pipes[n];
        if (it->packets + it->dropped == 0)
            continue;
        fprintf(file, "%s\n{\"pipe\": %d, ", comma, n);
        write_counters(file, it->packets, it->bytes, it->dropped, it->lost);
        comma = ",";
    }
    fputs("]}\n", file);
    if (fclose(file) != 0 || rename(part, path) != 0)
        fail("writing %s", path);
}

/* ---- the beginning */

static long number_or(const char *text, long otherwise) { return strcmp(text, "-") == 0 ? otherwise : atol(text); }

static int read_pair(const char *line) {
    long numbers[2 + PIPES];
    int n = strncmp(line, "pair ", 5) == 0 ? read_numbers(line + 5, numbers, 2 + PIPES) : -1;
    pair *between = n > 2 ? checked_pair(numbers[0], numbers[1]) : NULL;
    const way *there = between != NULL ? checked_way(numbers + 2, n - 2) : NULL;
    if (there != NULL)
        between->way = there;
    return there != NULL;
}

static void read_line(const char *line) {
    char word[16], time[32], packets[32];
    int a, b, c;
    pipe_ p = {.free_at = INT64_MIN / 2, .interval = -1};
    end e = {.fd = -1};
    if (sscanf(line, "net %d.%d.%d %lu %d", &a, &b, &c, &seed, &mtu) == 5) {
        net = (uint32_t)a << 24 | (uint32_t)b << 16 | (uint32_t)c << 8;
    } else if (sscanf(line, "end %255s %15s %d", e.path, e.device, &e.address) == 3 && n_ends < ENDS &&
               e.address > 0 && e.address < 255) {
        of_address[e.address] = n_ends;
        ends[n_ends++] = e;
    } else if (sscanf(line, "pipe %ld %lf %lf %31s %31s %lf %ld", &p.delay, &p.rate, &p.loss, time, packets,
                      &p.sigma, &p.every) == 7 && (p.sigma == 0 || p.every > 0)) {
        p.queue_time = number_or(time, INT64_MAX);
        p.queue_packets = number_or(packets, INT64_MAX);
        p.random = seed_of(n_pipes);
        p.rate_now = p.rate;
        if ((pipes = realloc(pipes, (n_pipes + 1) * sizeof *pipes)) == NULL)
            fail("no memory for pipes");
        pipes[n_pipes++] = p;
    } else if (!read_pair(line) && sscanf(line, "%15s", word) == 1) {
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
            } else if (what == CONTROL) {
                read_control();
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
    if (n != 3 && n != 4) {
        fputs("usage: relay CONFIG STATISTICS [CONTROL]\n", stderr);
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
    if (n == 4) {
        open_control(arguments[3]);
        watch(poll, control, CONTROL);
    }
    /* before all others, else their work would show as a delay of the network; it is idle but for microseconds */
    realtime = sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) == 0;
    began = now_ns();
    write_statistics(arguments[2]);
    run(poll, signals, arguments[2]);
}
