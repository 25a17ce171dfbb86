// A launch on the CPU: a fiber a thread, and the checks of every access.
//
// Found: elements out of bounds, vectors out of line, reads of memory that nothing wrote, races of two threads (of a
// warp, a block, two blocks), barriers and shuffles that not all threads reach, threads that wait for ever, loops
// without an end, and division by zero.
//
// Order of two accesses, one of them a write. In a block: the same thread, a barrier between them, or a shuffle of
// their warp. Across blocks: a fence, an atomic operation, the other block's atomic operation on the same place, and its
// fence; each ordered after the one before. Atomic operations on one place do not race with each other.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

struct Place { unsigned x, y, z; };

struct Moment { uint32_t thread, barrier, warp; };  // within a block; barrier, warp: how many of each came before
struct Access { uint32_t block, grid; Moment when; bool atomic; };

struct Cell {  // of one element, in one launch
  bool written = false;
  Access write;
  std::vector<Access> reads;  // since the write
};

struct Memory {  // laid out as simulator.py has it, up to `written`
  char* base; unsigned char* known;  // known: a byte a byte, not 0 where something was written; null where all is
  int64_t count; int32_t size; int32_t written;  // written: whether the kernel may write
  const char* name;
  bool own = false;  // of one block or thread
  std::vector<bool> touched;  // elements, where traffic is measured
  std::vector<Cell> cells; std::vector<char> bytes; std::vector<unsigned char> marks;
};

typedef std::map<uint32_t, std::vector<Moment>> Releases;  // by block
struct Acquired { Moment when; Releases releases; };

enum State { READY, AT_BARRIER, IN_WARP, AT_GRID, PAUSED, DONE };

struct Block;
struct Fiber {
  Block* block; Moment now; Place index; uint32_t lane; State state; int line;
  bool begun, fenced; Moment fence; Releases seen;  // seen: by atomic operations since the last fence
  jmp_buf at; char* stack; std::map<int, Memory*> locals;
  std::map<void*, uint32_t> times;  // that each access was made
};
struct Warp { uint32_t live = 0, here = 0; int line = 0; uint32_t generation = 0, votes[2] = {0, 0}; alignas(16) char slots[2][32][16]; };
struct Block {
  Place index; uint32_t number, live, waiting = 0; int line = 0;
  std::vector<Fiber> fibers; std::vector<Warp> warps; std::map<int, Memory*> shared; std::vector<Acquired> acquired;
};

struct Launch {  // laid out as simulator.py has it
  uint32_t grid[3], block[3], order, seed, cooperative, fibers; uint64_t most; char* error; uint32_t room;
  uint64_t accesses, switches; uint64_t place;  // place: the address of the code that failed
  uint32_t meter; uint64_t requested, distinct, sectors, least;  // traffic, where meter is set: see simulator.py
};

extern "C" { Place sim_thread, sim_block, sim_threads, sim_blocks; }

static Launch* launch; static const char* kernel; static Fiber* current; static bool failed;
static jmp_buf scheduler, straight; static ucontext_t made;
static void (*body)(void**); static void** body_arguments;
static uint32_t grid_epoch, grid_waiting, grid_total; static uint64_t progress;
static std::unordered_map<const void*, Releases> released;
static std::vector<Block*> running; static std::vector<Memory*> owned;

static void go_back() { if (launch->fibers) _longjmp(scheduler, 1); _longjmp(straight, 1); }

#define FAIL(...) fail(__builtin_return_address(0), __VA_ARGS__)
[[noreturn]] __attribute__((noinline, cold)) static void fail(void* place, const char* format, ...) {
  if (!failed) {
    failed = true; launch->place = (uint64_t)place;
    char text[500]; va_list list; va_start(list, format); vsnprintf(text, sizeof text, format, list); va_end(list);
    Fiber* f = current;
    snprintf(launch->error, launch->room, "%s: %s, by thread %u of block %u", kernel, text, f->now.thread, f->block->number);
  }
  go_back(); __builtin_unreachable();
}

static void divided(int) { fail(nullptr, "an integer was divided by zero"); }

struct Trap {  // while a launch runs
  struct sigaction before;
  Trap() { struct sigaction now = {}; now.sa_handler = divided; now.sa_flags = SA_NODEFER; sigaction(SIGFPE, &now, &before); }
  ~Trap() { sigaction(SIGFPE, &before, nullptr); }
};

// -- order ----------------------------------------------------------------------------------------------------

static bool before(const Moment& a, const Moment& b) {
  return a.thread == b.thread || a.barrier < b.barrier || (a.thread / 32 == b.thread / 32 && a.warp < b.warp);
}

static bool ordered(const Access& a) {
  Block* here = current->block;
  if (a.grid < grid_epoch) return true;
  if (a.block == here->number) return before(a.when, current->now);
  for (const Acquired& acquired : here->acquired) {
    if (!before(acquired.when, current->now)) continue;
    auto found = acquired.releases.find(a.block);
    if (found == acquired.releases.end()) continue;
    for (const Moment& release : found->second) if (before(a.when, release)) return true;
  }
  return false;
}

static void join(Releases& into, const Releases& from) {
  for (auto& [block, moments] : from) {
    auto& list = into[block];
    for (const Moment& m : moments)
      if (std::none_of(list.begin(), list.end(), [&](const Moment& k) { return k.thread == m.thread && k.barrier == m.barrier && k.warp == m.warp; })) list.push_back(m);
  }
}

extern "C" void sim_fence() {
  Fiber* f = current; f->fenced = true; f->fence = f->now;
  if (!f->seen.empty()) { f->block->acquired.push_back({f->now, f->seen}); f->seen.clear(); }
}

extern "C" void sim_atomic(void* place, int reads, int writes) {
  Fiber* f = current; Releases& at = released[place];
  if (reads) join(f->seen, at);
  if (!writes || !f->fenced) return;
  join(at, {{f->block->number, {f->fence}}});
  for (const Acquired& acquired : f->block->acquired) if (before(acquired.when, f->fence)) join(at, acquired.releases);
}

// -- traffic: what a warp asks for at once is what its lanes ask for at one place of the code, for the same time -----

struct Asked { std::set<uint64_t> sectors, bytes; };
static std::map<std::tuple<uint32_t, uint32_t, void*, uint32_t>, Asked> asked;  // by block, warp, place, time

static void measure(Memory* m, int64_t index, int elements, void* place) {
  Fiber* f = current; const uint64_t first = (uint64_t)m->base + index * m->size;
  Asked& of = asked[{f->block->number, f->now.thread / 32, place, f->times[place]++}];
  for (int64_t i = 0; i < (int64_t)elements * m->size; ++i) { of.sectors.insert((first + i) / 32); of.bytes.insert(first + i); }
  launch->requested += (uint64_t)elements * m->size;
  for (int64_t i = index; i < index + elements; ++i) if (!m->touched[i]) { m->touched[i] = true; launch->distinct += m->size; }
}

static void sum_up() {
  for (auto& [_, of] : asked) { launch->sectors += of.sectors.size(); launch->least += (of.bytes.size() + 31) / 32; }
  asked.clear();
}

// -- memory ---------------------------------------------------------------------------------------------------

static Access access_now(bool atomic) { return {current->block->number, grid_epoch, current->now, atomic}; }

static void* reach(Memory* m, int64_t index, int elements, bool atomic, bool write, void* place) {
  if (++launch->accesses > launch->most) fail(place, "the kernel does not end: %llu accesses", (unsigned long long)launch->most);
  if ((uint64_t)index >= (uint64_t)m->count || (uint64_t)(index + elements) > (uint64_t)m->count)
    fail(place, "%s of %s[%lld], which has %lld elements", write ? "write" : "read", m->name, (long long)index, (long long)m->count);
  char* at = m->base + index * m->size; int bytes = elements * m->size;
  if ((uintptr_t)at % bytes) fail(place, "%d bytes at once of %s[%lld], which is not aligned to them", bytes, m->name, (long long)index);
  if (write && !m->written) fail(place, "write of %s[%lld], which is read only", m->name, (long long)index);
  if ((!write || atomic) && m->known)
    for (int i = 0; i < bytes; ++i)
      if (!m->known[at - m->base + i]) fail(place, "read of %s[%lld], which nothing wrote", m->name, (long long)index);
  if (launch->meter && !m->own) measure(m, index, elements, place);
  if (!m->written) return at;
  const Access now = access_now(atomic);
  for (int64_t i = index; i < index + elements; ++i) {
    Cell& cell = m->cells[i];
    if (cell.written && !(atomic && cell.write.atomic) && !ordered(cell.write))
      fail(place, "race: %s of %s[%lld] after a write by thread %u of block %u", write ? "write" : "read", m->name, (long long)i, cell.write.when.thread, cell.write.block);
    if (write) {
      for (const Access& read : cell.reads)
        if (!(atomic && read.atomic) && !ordered(read))
          fail(place, "race: write of %s[%lld] after a read by thread %u of block %u", m->name, (long long)i, read.when.thread, read.block);
      cell.written = true; cell.write = now; cell.reads.clear();
    } else {
      auto same = [&](const Access& a) { return a.block == now.block && a.when.thread == now.when.thread; };
      auto found = std::find_if(cell.reads.begin(), cell.reads.end(), same);
      if (found == cell.reads.end()) cell.reads.push_back(now); else *found = now;
    }
  }
  if (write) { ++progress; if (m->known) memset(m->known + (at - m->base), 1, bytes); }
  return at;
}

extern "C" void* sim_read(Memory* m, long long index, int elements, int atomic) {
  return reach(m, index, elements, atomic, false, __builtin_return_address(0));
}
extern "C" void* sim_write(Memory* m, long long index, int elements, int atomic) {
  return reach(m, index, elements, atomic, true, __builtin_return_address(0));
}

static Memory* own(std::map<int, Memory*>& of, int line, int64_t count, int32_t size, const char* name) {
  Memory*& m = of[line];
  if (m) return m;
  m = new Memory{}; owned.push_back(m);
  m->bytes.assign(count * size + 16, (char)0xfb); m->marks.assign(count * size, 0); m->cells.resize(count);
  m->base = (char*)(((uintptr_t)m->bytes.data() + 15) & ~(uintptr_t)15); m->known = m->marks.data();
  m->count = count; m->size = size; m->written = 1; m->name = name; m->own = true;
  return m;
}
extern "C" Memory* sim_shared(int line, long long count, int size, const char* name) {
  return own(current->block->shared, line, count, size, name);
}
extern "C" Memory* sim_local(int line, long long count, int size, const char* name) {  // new at every pass, as C++ has it
  Memory* m = own(current->locals, line, count, size, name);
  std::fill(m->marks.begin(), m->marks.end(), 0); return m;
}

// Addresses of PTX: the memory's number above bit 40, bytes below; a block's own memory has bit 56 too.
static Memory** given; static int given_count;
extern "C" uint64_t sim_base(Memory* m) {
  for (int i = 0; i < given_count; ++i) if (given[i] == m) return (uint64_t)(i + 1) << 40;
  return 0;
}
extern "C" void* sim_at(uint64_t address, int bytes, int write, int atomic, int cached) {
  void* place = __builtin_return_address(0); const bool inside = address >> 56; uint64_t number = address >> 40 & 0xffff;
  Memory* m = nullptr;
  if (inside) { auto found = current->block->shared.find((int)number); if (found != current->block->shared.end()) m = found->second; }
  else if (number && number <= (uint64_t)given_count) m = given[number - 1];
  if (!m) fail(place, "%s of memory that the kernel was not given, at %llx", write ? "write" : "read", (unsigned long long)address);
  if (cached && m->written) fail(place, "read of %s, which the kernel writes, through the cache of constants", m->name);
  int64_t offset = (int64_t)(address << 24) >> 24;
  if (offset % bytes) fail(place, "%d bytes at once of %s, byte %lld, which is not aligned to them", bytes, m->name, (long long)offset);
  return (char*)reach(m, offset / m->size, std::max(bytes / m->size, 1), atomic, write, place) + offset % m->size;
}

// -- threads together -----------------------------------------------------------------------------------------

static void yield() {
  ++launch->switches; Fiber* f = current;
  if (!_setjmp(f->at)) _longjmp(scheduler, 1);
}
static void need_fibers(void* place, int line) {
  if (++launch->accesses > launch->most) fail(place, "the kernel does not end: %llu accesses", (unsigned long long)launch->most);
  if (!launch->fibers) fail(place, "line %d: threads meet in a kernel that was said to have no meeting", line);
}

extern "C" void sim_barrier(int line) {
  need_fibers(__builtin_return_address(0), line);
  Fiber* f = current; Block* b = f->block;
  if (b->waiting && b->line != line) FAIL("__syncthreads of line %d, while other threads wait at line %d", line, b->line);
  if (b->live < b->fibers.size()) FAIL("__syncthreads of line %d after %u threads ended", line, (unsigned)b->fibers.size() - b->live);
  b->line = f->line = line; f->state = AT_BARRIER;
  if (++b->waiting < b->live) return yield();
  b->waiting = 0; ++progress;
  for (Fiber& g : b->fibers) { g.state = READY; ++g.now.barrier; }
}

extern "C" void sim_grid_barrier(int line) {
  if (!launch->cooperative) FAIL("a barrier of the grid in a launch that is not cooperative, line %d", line);
  sim_barrier(line);
  Fiber* f = current; f->state = AT_GRID; f->line = line;
  if (++grid_waiting < grid_total) return yield();
  grid_waiting = 0; ++grid_epoch; ++progress;
  for (Block* b : running) for (Fiber& g : b->fibers) g.state = READY;
}

extern "C" void sim_pause(int line) {
  need_fibers(__builtin_return_address(0), line);
  current->state = PAUSED; current->line = line; yield();
}

static Warp* meet(unsigned mask, int line, void* place) {
  need_fibers(place, line);
  Fiber* f = current; Warp& w = f->block->warps[f->now.thread / 32];
  if (mask != 0xffffffffu) fail(place, "line %d: a mask that is not all lanes: %08x", line, mask);
  if (w.live != mask) fail(place, "line %d: lanes of the warp ended or are not there: %08x", line, ~w.live);
  if (w.here && w.line != line) fail(place, "shuffle of line %d, while other lanes wait at line %d", line, w.line);
  w.here |= 1u << f->lane; w.line = f->line = line;
  return &w;
}
static void depart(Warp* w) {
  Fiber* f = current;
  if (w->here != 0xffffffffu) { f->state = IN_WARP; return yield(); }
  w->here = 0; ++w->generation; w->votes[w->generation & 1] = 0; ++progress;
  Fiber* lanes = &f->block->fibers[f->now.thread - f->lane];
  for (int i = 0; i < 32; ++i) { lanes[i].state = READY; ++lanes[i].now.warp; }
}

extern "C" const void* sim_exchange(unsigned mask, const void* value, int size, int source, int line) {
  Warp* w = meet(mask, line, __builtin_return_address(0)); char(*slots)[16] = w->slots[w->generation & 1];
  memcpy(slots[current->lane], value, size); depart(w);
  return slots[source >= 0 && source < 32 ? source : (int)current->lane];
}
extern "C" unsigned sim_ballot(unsigned mask, int predicate, int line) {
  Warp* w = meet(mask, line, __builtin_return_address(0)); uint32_t* votes = &w->votes[w->generation & 1];
  *votes |= (predicate != 0) << current->lane; depart(w);
  return *votes;
}
extern "C" void sim_narrow() { FAIL("a shuffle within a part of the warp"); }
extern "C" int sim_lane() { return current->lane; }

// -- a launch -------------------------------------------------------------------------------------------------

static const size_t STACK = 64 << 10;
static const size_t RESIDENT = 4;  // blocks that take turns, in the order by chance

static char* stacks(size_t count) {
  static char* all = nullptr; static size_t have = 0;
  if (count > have) {
    if (all) munmap(all, have * STACK);
    all = (char*)mmap(nullptr, count * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); have = count;
  }
  return all;
}

static void finish() {
  Fiber* f = current; Block* b = f->block; Warp& w = b->warps[f->now.thread / 32];
  f->state = DONE; --b->live; w.live &= ~(1u << f->lane); ++progress;
  if (b->waiting) fail(nullptr, "the thread ended, while others wait at __syncthreads of line %d", b->line);
  if (w.here) fail(nullptr, "the lane ended, while others of its warp wait at line %d", w.line);
}

static void begin() { body(body_arguments); finish(); _longjmp(scheduler, 1); }

static void resume(Fiber* f) {
  current = f; sim_thread = f->index; sim_block = f->block->index;
  if (_setjmp(scheduler)) return;
  if (f->begun) _longjmp(f->at, 1);
  f->begun = true; getcontext(&made);
  made.uc_stack.ss_sp = f->stack; made.uc_stack.ss_size = STACK; made.uc_link = nullptr;
  makecontext(&made, begin, 0); setcontext(&made);
}

static void prepare(Block& b, uint32_t number, char* stack) {
  const uint32_t *g = launch->grid, *t = launch->block; uint32_t threads = t[0] * t[1] * t[2];
  b = Block(); b.number = number; b.live = threads; b.index = {number % g[0], number / g[0] % g[1], number / g[0] / g[1]};
  b.fibers.resize(threads); b.warps.resize((threads + 31) / 32);
  for (uint32_t i = 0; i < threads; ++i) {
    Fiber& f = b.fibers[i]; f.block = &b; f.now = {i, 0, 0}; f.index = {i % t[0], i / t[0] % t[1], i / t[0] / t[1]};
    f.lane = i % 32; f.state = READY; f.begun = f.fenced = false; f.line = 0; f.stack = stack ? stack + i * STACK : nullptr;
    b.warps[i / 32].live |= 1u << f.lane;
  }
}

static uint64_t state_of_chance;
static uint32_t chance(uint32_t below) {
  state_of_chance = state_of_chance * 6364136223846793005ull + 1442695040888963407ull; return (state_of_chance >> 33) % below;
}
template <class T> static void arrange(std::vector<T>& items) {
  if (launch->order == 1) std::reverse(items.begin(), items.end());
  if (launch->order == 2) for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[chance(i)]);
}

static void wait_for_ever(Fiber* f) {
  static const char* const where[] = {"", "at __syncthreads", "in a shuffle", "at the barrier of the grid", "in a loop that pauses", ""};
  current = f; failed = true;
  snprintf(launch->error, launch->room, "%s: thread %u of block %u waits for ever %s, line %d", kernel, f->now.thread, f->block->number, where[f->state], f->line);
}

static void run_fibers() {  // of the running blocks, until all are done
  std::vector<Fiber*> queue;
  for (Block* b : running) for (Fiber& f : b->fibers) queue.push_back(&f);
  arrange(queue); size_t left = queue.size(); int idle = 0;
  while (left && !failed) {
    uint64_t was = progress; left = 0; Fiber* waiting = nullptr;
    if (launch->order == 2) arrange(queue);
    for (Fiber* f : queue) {
      if (f->state == DONE) continue;
      if (f->state == PAUSED) f->state = READY;
      if (f->state == READY) { resume(f); if (failed) return; }
      if (f->state != DONE) { ++left; waiting = f; }
    }
    idle = progress == was ? idle + 1 : 0;
    if (left && idle > 64) return wait_for_ever(waiting);
  }
}

static void run_straight(Block& b) {  // threads that never meet
  for (Fiber& f : b.fibers) {
    if (_setjmp(straight)) return;
    current = &f; sim_thread = f.index; sim_block = b.index; body(body_arguments); finish();
  }
}

extern "C" int sim_launch(Launch* l, const char* name, void (*function)(void**), void** arguments, Memory** memories, int count) {
  launch = l; kernel = name; body = function; body_arguments = arguments; failed = false; current = nullptr;
  grid_epoch = grid_waiting = 0; progress = 0; released.clear(); state_of_chance = l->seed; l->accesses = l->switches = l->place = 0;
  sim_threads = {l->block[0], l->block[1], l->block[2]}; sim_blocks = {l->grid[0], l->grid[1], l->grid[2]};
  uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2], blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
  auto refuse = [&](const char* why) { snprintf(l->error, l->room, "%s: %s", name, why); return 1; };
  if (!threads || !blocks) return refuse("a launch of nothing");
  if (threads > 1024 || l->block[2] > 64) return refuse("more than 1,024 threads a block");
  if (l->grid[0] > 0x7fffffffu || l->grid[1] > 65535 || l->grid[2] > 65535) return refuse("more blocks than a grid has");
  given = memories; given_count = count; l->requested = l->distinct = l->sectors = l->least = 0; asked.clear();
  if (l->meter) for (int i = 0; i < count; ++i) memories[i]->touched.assign(memories[i]->count, false);
  for (int i = 0; i < count; ++i) { memories[i]->cells.clear(); if (memories[i]->written) memories[i]->cells.resize(memories[i]->count); }
  Trap trap;
  std::vector<uint32_t> numbers(blocks);
  for (uint32_t i = 0; i < blocks; ++i) numbers[i] = i;
  arrange(numbers);
  const size_t together = l->cooperative ? blocks : l->fibers && l->order == 2 ? std::min<uint64_t>(blocks, RESIDENT) : 1;
  char* stack = l->fibers ? stacks(together * threads) : nullptr;
  std::vector<Block> all(together); grid_total = blocks * threads;
  for (size_t next = 0; next < blocks && !failed; next += together) {
    running.clear();
    for (size_t i = 0; i < together && next + i < blocks; ++i) {
      prepare(all[i], numbers[next + i], stack + i * threads * STACK); running.push_back(&all[i]);
    }
    if (l->fibers) run_fibers(); else run_straight(all[0]);
  }
  for (Memory* m : owned) delete m;
  owned.clear(); sum_up();
  return failed;
}

extern "C" Memory* sim_memory(char* base, unsigned char* known, int64_t count, int32_t size, int32_t written, const char* name) {
  Memory* m = new Memory{}; m->base = base; m->known = known; m->count = count; m->size = size; m->written = written; m->name = name; return m;
}
extern "C" void sim_forget(Memory* m) { delete m; }
