/* A load generator for Kafka's wire protocol that costs as little as it can: on a machine with two cores a heavier
 * client measures itself instead of the broker.
 *
 * One thread, one epoll, non-blocking sockets. It does not know the protocol: the caller brings ready-made request
 * frames (each with its 4-byte length, one after the other in a file), and says where in a response the error code is
 * and where in a fetch request the offset goes. Only the correlation id, and that offset, are patched.
 *
 *   loadgen produce  closed loop: each connection keeps `inflight` requests out, round and round through the frames,
 *                    or with --pinned 1 always the same frame (the next connection the next one); with --rate, open loop: request n is due at start + n/rate and its latency counts from there
 *   loadgen fetch    each connection follows its own fetch frame (a partition) up to --end-offset
 *   loadgen e2e      one connection produces records at --rate (frame i carries i+1 records), another fetches them;
 *                    a record's latency counts from the moment it was due, so a stall is not forgotten
 *   loadgen idle     opens the connections, sends each the first frame, reads the answer, then holds them till stdin ends
 *
 * --port may come several times, for brokers of one cluster: connections take them in turn, and of the frames each takes
 * those that are for its broker: of n brokers every nth.
 *
 * The result is one line of JSON on stdout. Any error code, any broken connection, ends the run with status 1.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 12, PORTS_MAX = 16, INFLIGHT_MAX = 64, LATENCY_US_MAX = 5000000 };
/* Where things are in a Fetch response, version 13 to 18, for one topic and one partition, counted after the length:
 * correlation id, tags, throttle, error, session, topics(1), topic id, partitions(1), index, error, three offsets,
 * no aborted transactions, preferred replica, length of the records. */
enum { FETCH_TOP_ERROR = 9, FETCH_ERROR = 37, FETCH_ABORTED = 63, FETCH_RECORDS = 68 };

typedef struct { const uint8_t *bytes; uint32_t size; } Frame;

typedef struct {
    int fd, fetching;
    uint32_t next_frame;                       /* which frame goes out next */
    const Frame *out;                          /* the frame on its way, NULL between frames */
    uint32_t out_done;
    uint8_t head[HEAD];                        /* its first bytes, patched */
    uint8_t *own;                              /* a fetching connection patches its offset in its own copy */
    Frame own_frame;
    int64_t offset;                            /* next offset to fetch */
    uint32_t correlation, answered;
    int64_t sent_ns[INFLIGHT_MAX];
    uint8_t *in;
    size_t in_size, in_used;
    int waits_for_writable, finished;
} Conn;

static struct {
    const char *mode, *host;
    int ports[PORTS_MAX], port_count, connections, inflight, error_at, offset_at, pinned;
    double seconds, warmup, rate;
    int64_t end_offset, requests_max;
} opt = {.host = "127.0.0.1", .connections = 1, .inflight = 1, .seconds = 3, .end_offset = -1, .requests_max = -1};

static Frame *frames, *fetch_frames;
static uint32_t frame_count, fetch_frame_count, mean_frame_bytes;
static Conn *conns;
static int epoll_fd, timer_fd;
static int64_t start_ns, measure_ns, end_ns, last_ns;
static uint64_t total_requests, total_bytes, counted, counted_bytes, records_seen;
static int64_t issued;                         /* open loop: requests (or records) issued so far */
static uint32_t *latency_us;                   /* a histogram with one bin for each microsecond */
static int live;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "loadgen: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static uint32_t be32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return ntohl(v); }
static int16_t be16(const uint8_t *p) { return (int16_t)(p[0] << 8 | p[1]); }
static int64_t be64(const uint8_t *p) { return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4)); }
static void put32(uint8_t *p, uint32_t v) { v = htonl(v); memcpy(p, &v, 4); }
static void put64(uint8_t *p, int64_t v) { put32(p, (uint32_t)((uint64_t)v >> 32)); put32(p + 4, (uint32_t)v); }

static Frame *load_frames(const char *path, uint32_t *count) {
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *all = malloc(size);
    if (!all || fread(all, 1, size, file) != (size_t)size) die("cannot read the frames");
    fclose(file);
    uint32_t n = 0;
    Frame *list = malloc(sizeof(Frame) * (size / (HEAD + 4) + 1));
    for (long at = 0; at < size; n++) {
        uint32_t whole = be32(all + at) + 4;
        if (whole < HEAD || at + (long)whole > size) die("a frame is cut");
        list[n] = (Frame){all + at, whole};
        at += whole;
    }
    *count = n;
    return list;
}

static void record_latency(int64_t ns) {
    int64_t us = ns / 1000;
    latency_us[us < 0 ? 0 : us >= LATENCY_US_MAX ? LATENCY_US_MAX - 1 : us]++;
}

/* --- connections --------------------------------------------------------------------------------------------- */

static void watch(Conn *c, int operation) {
    struct epoll_event event = {.events = EPOLLIN | (c->waits_for_writable ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(epoll_fd, operation, c->fd, &event)) die("epoll_ctl");
}

static void open_conn(Conn *c) {
    int port = opt.ports[(c - conns) % opt.port_count];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, opt.host, &address.sin_addr) != 1) die("--host wants an IPv4 address");
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address)) die("cannot connect");
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->in_size = 4096;
    c->in = malloc(c->in_size);
    watch(c, EPOLL_CTL_ADD);
    live++;
}

static void finish(Conn *c) {
    if (c->finished) return;
    c->finished = 1;
    live--;
}

/* Writes what it can of the frame on its way. */
static void push(Conn *c) {
    const Frame *f = c->out;
    while (c->out_done < f->size) {
        struct iovec parts[2];
        int n = 0;
        if (c->out_done < HEAD) parts[n++] = (struct iovec){c->head + c->out_done, HEAD - c->out_done};
        uint32_t from = c->out_done < HEAD ? HEAD : c->out_done;
        if (from < f->size) parts[n++] = (struct iovec){(void *)(f->bytes + from), f->size - from};
        ssize_t wrote = writev(c->fd, parts, n);
        if (wrote < 0) {
            if (errno != EAGAIN) die("write");
            if (!c->waits_for_writable) { c->waits_for_writable = 1; watch(c, EPOLL_CTL_MOD); }
            return;
        }
        c->out_done += wrote;
    }
    c->out = NULL;
    if (c->waits_for_writable) { c->waits_for_writable = 0; watch(c, EPOLL_CTL_MOD); }
}

static uint32_t outstanding(const Conn *c) { return c->correlation - c->answered; }
static int can_send(const Conn *c) { return !c->finished && !c->out && outstanding(c) < (uint32_t)opt.inflight; }

static void send_frame(Conn *c, const Frame *f, int64_t counts_from_ns) {
    memcpy(c->head, f->bytes, HEAD);
    put32(c->head + 8, c->correlation);
    c->sent_ns[c->correlation++ % INFLIGHT_MAX] = counts_from_ns;
    c->out = f;
    c->out_done = 0;
    push(c);
}

static void send_fetch(Conn *c) {
    put64(c->own + opt.offset_at, c->offset);
    send_frame(c, &c->own_frame, now_ns());
}

static void send_next(Conn *c, int64_t counts_from_ns) {
    const Frame *f = &frames[c->next_frame];
    c->next_frame = (c->next_frame + (opt.pinned ? 0 : opt.port_count)) % frame_count;
    send_frame(c, f, counts_from_ns);
}

/* --- answers --------------------------------------------------------------------------------------------------- */

static void check_error(const uint8_t *answer, uint32_t size, int at) {
    errno = 0;
    if (size < (uint32_t)at + 2) die("an answer is too short");
    if (be16(answer + at)) {
        fprintf(stderr, "loadgen: the broker answered error %d\n", be16(answer + at));
        exit(1);
    }
}

static void on_batches(Conn *c, const uint8_t *batch, const uint8_t *end, int64_t now) {
    int e2e = opt.mode[0] == 'e';
    while (end - batch >= 61) {
        uint32_t size = be32(batch + 8) + 12;
        if (size > end - batch) return;        /* cut at the limit of the fetch, as the protocol allows */
        int64_t base = be64(batch), last = base + (int32_t)be32(batch + 23);
        for (int64_t o = base < c->offset ? c->offset : base; e2e && o <= last; o++) {
            int64_t due = start_ns + (int64_t)(o * 1e9 / opt.rate);
            if (due >= measure_ns && due < end_ns) { record_latency(now - due); counted++; }
        }
        records_seen += last - base + 1;
        total_bytes += size;
        if (last >= c->offset) c->offset = last + 1;
        batch += size;
    }
}

static void on_fetched(Conn *c, const uint8_t *answer, uint32_t size, int64_t now) {
    check_error(answer, size, FETCH_TOP_ERROR);
    check_error(answer, size, FETCH_ERROR);
    if (size < FETCH_RECORDS + 1 || answer[FETCH_ABORTED] > 1) die("a fetch answer has another shape than expected");
    uint32_t at = FETCH_RECORDS, length = 0, shift = 0;
    do length |= (uint32_t)(answer[at] & 0x7f) << shift, shift += 7; while (answer[at++] & 0x80 && at < size);
    if (length > 1) {
        if (at + length - 1 > size) die("a fetch answer is cut");
        on_batches(c, answer + at, answer + at + length - 1, now);
    }
    int e2e = opt.mode[0] == 'e';
    if (e2e ? now > end_ns + 10000000000LL || (now >= end_ns && c->offset >= issued) : c->offset >= opt.end_offset)
        finish(c);
    else
        send_fetch(c);
}

static void on_answer(Conn *c, const uint8_t *answer, uint32_t size, int64_t now) {
    errno = 0;
    if (be32(answer) != c->answered) die("an answer came out of order");
    int64_t since = c->sent_ns[c->answered++ % INFLIGHT_MAX];
    total_requests++;
    if (now > last_ns) last_ns = now;
    if (c->fetching) { on_fetched(c, answer, size, now); return; }
    if (opt.mode[0] == 'i') { finish(c); return; }
    check_error(answer, size, opt.error_at);
    if (opt.mode[0] == 'e') return;
    total_bytes += mean_frame_bytes;
    if (now >= measure_ns && now < end_ns) {
        record_latency(now - since);
        counted++;
        counted_bytes += mean_frame_bytes;
    }
}

static void readable(Conn *c) {
    for (;;) {
        size_t room = c->in_size - c->in_used;
        ssize_t got = recv(c->fd, c->in + c->in_used, room, 0);
        if (got == 0) { errno = 0; die("the broker closed a connection"); }
        if (got < 0) { if (errno == EAGAIN) return; die("read"); }
        c->in_used += got;
        int64_t now = now_ns();
        size_t at = 0;
        while (c->in_used - at >= 4) {
            size_t whole = (size_t)be32(c->in + at) + 4;
            if (whole > c->in_size) { c->in = realloc(c->in, whole * 2); c->in_size = whole * 2; }
            if (c->in_used - at < whole) break;
            on_answer(c, c->in + at + 4, whole - 4, now);
            at += whole;
        }
        if (at) { memmove(c->in, c->in + at, c->in_used - at); c->in_used -= at; }
        if ((size_t)got < room) return;        /* drained; if not, epoll says so */
    }
}

/* --- what is sent when -------------------------------------------------------------------------------------------- */

static int over(int64_t now) {
    return now >= end_ns || (opt.requests_max >= 0 && issued >= opt.requests_max);
}

static void feed_closed_loop(Conn *c, int64_t now) {
    while (can_send(c)) {
        if (over(now)) { if (!outstanding(c)) finish(c); return; }
        issued++;
        send_next(c, now_ns());
    }
    if (over(now) && !c->out && !outstanding(c)) finish(c);
}

static int64_t due_ns(int64_t n) { return start_ns + (int64_t)(n * 1e9 / opt.rate); }

static void feed_open_loop(int64_t now) {
    static int turn;
    int64_t due = (int64_t)(((now < end_ns ? now : end_ns) - start_ns) * opt.rate / 1e9) + 1;
    if (opt.mode[0] == 'e') {
        while (issued < due && can_send(&conns[0])) {
            int64_t records = due - issued < frame_count ? due - issued : frame_count;
            issued += records;
            send_frame(&conns[0], &frames[records - 1], now);
        }
        if (now >= end_ns && issued >= due && !outstanding(&conns[0])) finish(&conns[0]);
        return;
    }
    for (int tried = 0; issued < due && tried < opt.connections; tried++) {
        Conn *c = &conns[turn++ % opt.connections];
        if (!can_send(c)) continue;
        send_next(c, due_ns(issued++));
        tried = -1;
    }
    for (int i = 0; now >= end_ns && issued >= due && i < opt.connections; i++)
        if (!outstanding(&conns[i])) finish(&conns[i]);
}

static void arm_timer(int64_t at_ns) {
    struct itimerspec when = {.it_value = {at_ns / 1000000000LL, at_ns % 1000000000LL}};
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void run(void) {
    struct epoll_event events[128];
    int64_t quiet_since = now_ns();
    if (opt.rate > 0) arm_timer(start_ns);
    while (live > 0) {
        int n = epoll_wait(epoll_fd, events, 128, 1000);
        int64_t now = now_ns();
        if (n > 0) quiet_since = now;
        if (now - quiet_since > 30000000000LL) { errno = 0; die("no answer for 30 seconds"); }
        for (int i = 0; i < n; i++) {
            Conn *c = events[i].data.ptr;
            if (!c) {                          /* the timer; feed_open_loop below does the work */
                uint64_t expired;
                if (read(timer_fd, &expired, sizeof expired) < 0 && errno != EAGAIN) die("timer");
                continue;
            }
            if (events[i].events & EPOLLOUT && c->out) push(c);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) readable(c);
            if (!opt.rate && opt.mode[0] == 'p') feed_closed_loop(c, now);
        }
        if (opt.rate > 0) {
            now = now_ns();
            feed_open_loop(now);
            int64_t next = due_ns(issued);     /* behind, with all requests out: an answer wakes us before the clock */
            arm_timer(next > now && now < end_ns ? next : now + 500000);
        }
    }
}

/* Connections begin at different places, each at a frame for its broker. */
static uint32_t first_frame(int connection) {
    uint32_t place = (uint64_t)connection * frame_count / opt.connections;
    return place - place % opt.port_count + connection % opt.port_count;
}

static void start(void) {
    int fetching = opt.mode[0] == 'f';
    for (int i = 0; i < opt.connections; i++) open_conn(&conns[i]);
    start_ns = now_ns();
    measure_ns = start_ns + (int64_t)(opt.warmup * 1e9);
    end_ns = measure_ns + (int64_t)(opt.seconds * 1e9);
    for (int i = 0; i < opt.connections; i++) {
        Conn *c = &conns[i];
        c->next_frame = frame_count ? (opt.pinned ? i : first_frame(i)) % frame_count : 0;
        c->fetching = fetching || (opt.mode[0] == 'e' && i == 1);
        if (c->fetching) {
            Frame f = fetch_frames[fetching ? i % fetch_frame_count : 0];
            c->own = malloc(f.size);
            memcpy(c->own, f.bytes, f.size);
            c->own_frame = (Frame){c->own, f.size};
            send_fetch(c);
        } else if (opt.mode[0] == 'i') {
            send_next(c, start_ns);
        } else if (!opt.rate) {
            feed_closed_loop(c, start_ns);
        }
    }
}

static double percentile_ms(double share) {
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < LATENCY_US_MAX; i++) all += latency_us[i];
    for (int i = 0; i < LATENCY_US_MAX; i++)
        if ((seen += latency_us[i]) && seen >= share * all) return i / 1000.0;
    return 0;
}

static void report(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    int64_t until = last_ns < end_ns || opt.mode[0] == 'f' ? last_ns : end_ns;
    double elapsed = (until - (opt.mode[0] == 'f' ? start_ns : measure_ns)) / 1e9;
    printf("{\"counted\": %lu, \"counted_bytes\": %lu, \"elapsed_s\": %.6f, \"total_requests\": %lu, "
           "\"total_bytes\": %lu, \"records\": %lu, \"p50_ms\": %.3f, \"p90_ms\": %.3f, \"p99_ms\": %.3f, "
           "\"p999_ms\": %.3f, \"max_ms\": %.3f, \"client_cpu_s\": %.3f}\n",
           counted, counted_bytes, elapsed, total_requests, total_bytes, records_seen, percentile_ms(.5),
           percentile_ms(.9), percentile_ms(.99), percentile_ms(.999), percentile_ms(1), cpu);
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 2) die("usage: loadgen produce|fetch|e2e|idle --port P --frames FILE ...");
    opt.mode = argv[1];
    static const struct option names[] = {
        {"host", 1, 0, 'h'}, {"port", 1, 0, 'p'}, {"frames", 1, 0, 'f'}, {"fetch-frames", 1, 0, 'F'},
        {"connections", 1, 0, 'c'}, {"inflight", 1, 0, 'i'}, {"seconds", 1, 0, 's'}, {"warmup", 1, 0, 'w'},
        {"rate", 1, 0, 'r'}, {"error-at", 1, 0, 'e'}, {"offset-at", 1, 0, 'o'}, {"end-offset", 1, 0, 'E'},
        {"requests", 1, 0, 'n'}, {"pinned", 1, 0, 'P'}, {0, 0, 0, 0}};
    for (int o; (o = getopt_long(argc - 1, argv + 1, "", names, NULL)) != -1;) switch (o) {
        case 'h': opt.host = optarg; break;
        case 'p':
            if (opt.port_count == PORTS_MAX) die("too many ports");
            opt.ports[opt.port_count++] = atoi(optarg);
            break;
        case 'f': frames = load_frames(optarg, &frame_count); break;
        case 'F': fetch_frames = load_frames(optarg, &fetch_frame_count); break;
        case 'c': opt.connections = atoi(optarg); break;
        case 'i': opt.inflight = atoi(optarg); break;
        case 's': opt.seconds = atof(optarg); break;
        case 'w': opt.warmup = atof(optarg); break;
        case 'r': opt.rate = atof(optarg); break;
        case 'e': opt.error_at = atoi(optarg); break;
        case 'o': opt.offset_at = atoi(optarg); break;
        case 'E': opt.end_offset = atoll(optarg); break;
        case 'n': opt.requests_max = atoll(optarg); break;
        case 'P': opt.pinned = atoi(optarg); break;
        default: return 2;
    }
    if (opt.mode[0] == 'e') opt.connections = 2;
    if (opt.mode[0] == 'f' ? !fetch_frame_count : !frame_count) die("no frames");
    if (opt.inflight > INFLIGHT_MAX) die("too many in flight");
    if (!opt.port_count) die("no --port");
    if (frame_count % opt.port_count) die("every broker needs as many frames");
    for (uint32_t i = 0; i < frame_count; i++) total_bytes += frames[i].size;
    mean_frame_bytes = frame_count ? total_bytes / frame_count : 0;
    total_bytes = 0;
    conns = calloc(opt.connections, sizeof(Conn));
    latency_us = calloc(LATENCY_US_MAX, sizeof *latency_us);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &event);
    start();
    run();
    report();
    if (opt.mode[0] == 'i') while (read(0, &event, 1) > 0) {}
    return 0;
}
