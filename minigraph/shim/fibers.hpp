// Runs a kernel on one CPU thread: the blocks one after another, the threads of a block as fibers where the
// kernel waits, else in a plain loop. A fiber is made by makecontext and switched by longjmp, which makes no system
// call: 50 ns there and back, where swapcontext took 900 ns on the same machine.

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

namespace minigraph_shim {

const unsigned MOST_THREADS = 1024, WARP = 32, MOST_SHARED = 48 * 1024, GUARD = 256, STACK = 64 * 1024;
const unsigned char POISON = 0xff;  // NaN in every floating-point type, -1 in every signed one

enum State { READY, AT_BARRIER, AT_EXCHANGE, ENDED };
struct Fiber {
    jmp_buf at;
    uint3 thread;
    State state;
    bool begun;
    Place place;
    unsigned mask, source, bytes, ayes, lanes;
    unsigned char value[8], received[8];
};
// What went wrong, for Python to say; the order of the numbers is that of TROUBLES in run.py.
enum Trouble { NONE, DIVERGED, STRAY_LANE, UNSEEN_WAIT, SHARED_OVERRUN, BAD_MEMORY, BAD_DIVISION, SHARED_LIMIT };
struct Report { unsigned line, other_line, waiting, threads; uint3 block, thread, other; };

alignas(128) unsigned char dynamic_shared[MOST_SHARED + GUARD];
static Fiber fibers[MOST_THREADS];
static unsigned threads, current, exchanging;
static bool descending, fibered;
static jmp_buf scheduler;
static sigjmp_buf escape;
static __thread bool running;
static Report *report;
static const Kernel *kernel;
static void **arguments;
static unsigned char *stacks;

[[noreturn]] static void fail(Trouble trouble, unsigned line = 0) {
    report->line = line;
    report->block = blockIdx;
    report->thread = threadIdx;
    siglongjmp(escape, trouble);
}

static void on_signal(int number) {
    if (!running) { signal(number, SIG_DFL); return; }  // another thread's: it faults again, without us
    running = false;
    fail(number == SIGFPE ? BAD_DIVISION : BAD_MEMORY);
}

// ---- fibers ----------------------------------------------------------------------------------------------------

static __attribute__((noinline)) void pause_fiber() {
    if (!_setjmp(fibers[current].at)) _longjmp(scheduler, 1);
}

static void fiber_main() {
    for (;;) {  // one turn is one thread of one block
        kernel->call(arguments);
        fibers[current].state = ENDED;
        pause_fiber();
    }
}

static __attribute__((noinline)) void resume(unsigned thread) {
    static ucontext_t context;
    Fiber &fiber = fibers[thread];
    current = thread;
    threadIdx = fiber.thread;
    if (_setjmp(scheduler)) return;
    if (fiber.begun) _longjmp(fiber.at, 1);
    fiber.begun = true;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (unsigned long)thread * STACK;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
}

static void barrier(Place here) {
    if (!fibered) fail(UNSEEN_WAIT, here.line);
    fibers[current].place = here;
    fibers[current].state = AT_BARRIER;
    pause_fiber();
}

static unsigned lane() { return current % WARP; }

static unsigned exchange(Place here, unsigned mask, void *value, unsigned bytes, unsigned source, unsigned *lanes) {
    if (!fibered) fail(UNSEEN_WAIT, here.line);
    if (!(mask >> lane() & 1)) fail(STRAY_LANE, here.line);
    Fiber &fiber = fibers[current];
    fiber.place = here;
    fiber.mask = mask;
    fiber.source = source % WARP;
    fiber.bytes = bytes;
    memset(fiber.value, 0, sizeof fiber.value);
    memcpy(fiber.value, value, bytes);
    fiber.state = AT_EXCHANGE;
    exchanging++;
    pause_fiber();
    memcpy(value, fiber.received, bytes);
    *lanes = fiber.lanes;
    return fiber.ayes;
}

// ---- the scheduler ---------------------------------------------------------------------------------------------

static bool same(const Fiber &a, const Fiber &b) {
    return a.state == b.state && a.place.line == b.place.line && a.place.number == b.place.number;
}

// Lets go the lanes of one warp that wait in one exchange, if all that its mask names have come or have ended.
static bool release(unsigned base) {
    unsigned lanes_here = threads - base < WARP ? threads - base : WARP;
    bool released = false;
    for (unsigned first = 0; first < lanes_here; first++) {
        Fiber &leader = fibers[base + first];
        if (leader.state != AT_EXCHANGE) continue;
        unsigned group = 0, ayes = 0;
        bool whole = true;
        for (unsigned other = 0; other < lanes_here; other++) {
            Fiber &fiber = fibers[base + other];
            if (!(leader.mask >> other & 1) || fiber.state == ENDED) continue;
            whole = whole && same(fiber, leader) && fiber.mask == leader.mask;
            group |= 1u << other;
            ayes |= (unsigned)(memcmp(fiber.value, "\0\0\0\0\0\0\0", 8) != 0) << other;
        }
        if (!whole) continue;
        for (unsigned other = 0; other < lanes_here; other++) {
            if (!(group >> other & 1)) continue;
            Fiber &fiber = fibers[base + other];
            fiber.lanes = group;
            fiber.ayes = ayes;
            if (group >> fiber.source & 1) memcpy(fiber.received, fibers[base + fiber.source].value, 8);
            else memset(fiber.received, POISON, 8);  // a lane that is not there: undefined
            fiber.state = READY;
            exchanging--;
        }
        released = true;
    }
    return released;
}

static void diverged(unsigned first, unsigned other) {
    report->waiting = 0;
    for (unsigned t = 0; t < threads; t++) report->waiting += same(fibers[t], fibers[first]);
    report->threads = threads;
    report->other = fibers[other].thread;
    report->other_line = fibers[other].state == ENDED ? 0 : fibers[other].place.line;
    threadIdx = fibers[first].thread;
    fail(DIVERGED, fibers[first].place.line);
}

static void run_fibers() {
    exchanging = 0;
    for (unsigned t = 0; t < threads; t++) fibers[t].state = READY;
    for (;;) {
        for (unsigned i = 0; i < threads; i++) {
            unsigned t = descending ? threads - 1 - i : i;
            if (fibers[t].state == READY) resume(t);
        }
        bool released = false;
        for (unsigned base = 0; exchanging && base < threads; base += WARP) released |= release(base);
        if (released) continue;
        // nobody can go on but through a barrier, where all must be, or by having ended
        unsigned first = 0, other = 0;
        while (first < threads && fibers[first].state == ENDED) first++;
        if (first == threads) return;
        while (other < threads && same(fibers[other], fibers[first])) other++;
        if (other < threads || fibers[first].state != AT_BARRIER) diverged(first, other % threads);
        for (unsigned t = 0; t < threads; t++) fibers[t].state = READY;
    }
}

static void run_loop() {
    for (unsigned i = 0; i < threads; i++) {
        threadIdx = fibers[descending ? threads - 1 - i : i].thread;
        kernel->call(arguments);
    }
}

static void run_blocks(unsigned shared) {
    if (kernel->shared_end - kernel->shared + shared > MOST_SHARED) fail(SHARED_LIMIT);
    unsigned long long blocks = (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    for (unsigned long long i = 0; i < blocks; i++) {
        unsigned long long block = descending ? blocks - 1 - i : i;
        blockIdx = {(unsigned)(block % gridDim.x), (unsigned)(block / gridDim.x % gridDim.y),
                    (unsigned)(block / gridDim.x / gridDim.y)};
        memset(kernel->shared, POISON, kernel->shared_end - kernel->shared);
        if (shared) memset(dynamic_shared, POISON, shared + GUARD);
        fibered ? run_fibers() : run_loop();
        for (unsigned byte = shared; shared && byte < shared + GUARD; byte++)
            if (dynamic_shared[byte] != POISON) fail(SHARED_OVERRUN);
    }
}

}  // namespace minigraph_shim

// ---- what Python calls -----------------------------------------------------------------------------------------

#define MINIGRAPH_EXPORT extern "C" __attribute__((visibility("default")))

// Runs one launch; `geometry` is the grid's x, y, z and the block's. Returns a Trouble.
MINIGRAPH_EXPORT int minigraph_launch(const minigraph_shim::Kernel *which, void **args, const unsigned *geometry,
                                      unsigned shared, int backwards, unsigned char *stack,
                                      minigraph_shim::Report *told) {
    using namespace minigraph_shim;
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE};
    static struct sigaction before[3];
    gridDim = {geometry[0], geometry[1], geometry[2]};
    blockDim = {geometry[3], geometry[4], geometry[5]};
    kernel = which, arguments = args, descending = backwards, fibered = which->waits, stacks = stack, report = told;
    blockIdx = {};
    threads = 0;
    for (unsigned z = 0; z < blockDim.z; z++)
        for (unsigned y = 0; y < blockDim.y; y++)
            for (unsigned x = 0; x < blockDim.x; x++, threads++) {
                fibers[threads].thread = {x, y, z};
                fibers[threads].begun = false;
            }
    struct sigaction ours = {};
    ours.sa_handler = on_signal;
    for (int i = 0; i < 3; i++) sigaction(SIGNALS[i], &ours, &before[i]);
    running = true;
    int trouble = sigsetjmp(escape, 1);
    if (!trouble) run_blocks(shared);
    running = false;
    for (int i = 0; i < 3; i++) sigaction(SIGNALS[i], &before[i], nullptr);
    return trouble;
}

// Compares `bytes` bytes, with poisoned guards of `guard` before and after: the first difference, or -1 for none,
// -2 where something was written before them, -3 where after.
MINIGRAPH_EXPORT long long minigraph_compare(const unsigned char *a, const unsigned char *b, long long bytes,
                                             int guard) {
    const unsigned char poison = minigraph_shim::POISON;
    for (int i = 0; i < guard; i++) {
        if (a[-1 - i] != poison || b[-1 - i] != poison) return -2;
        if (a[bytes + i] != poison || b[bytes + i] != poison) return -3;
    }
    if (memcmp(a, b, bytes) == 0) return -1;
    for (long long i = 0;; i++) if (a[i] != b[i]) return i;
}
