// Runs emitted CUDA on the CPU, one fiber a thread: just enough of the language to compare results.
// Every fiber runs up to its next barrier or shuffle before any goes past it. Nothing is checked beyond results.
#include <math.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static

struct Index { unsigned x; };
static Index blockIdx, threadIdx;

struct Fiber { ucontext_t context; std::vector<char> stack; bool done; };
static std::vector<Fiber> fibers;
static std::vector<unsigned long long> exchanged;
static ucontext_t scheduler;
static unsigned current;
static std::function<void()> running;

static void start() { running(); fibers[current].done = true; }
static void __syncthreads() { swapcontext(&fibers[current].context, &scheduler); threadIdx.x = current; }

static void run_grid(unsigned grid, unsigned block, std::function<void()> body) {
  running = body; fibers.resize(block); exchanged.resize(block);
  for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
    for (Fiber& fiber : fibers) {
      fiber.done = false; fiber.stack.resize(1 << 16); getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data(); fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.context.uc_link = &scheduler; makecontext(&fiber.context, start, 0);
    }
    for (unsigned left = block; left;) {
      left = 0;
      for (current = 0; current < block; ++current) {
        if (fibers[current].done) continue;
        threadIdx.x = current; swapcontext(&scheduler, &fibers[current].context); left += !fibers[current].done;
      }
    }
  }
}

template <class T> static T exchange(T value, unsigned other) {
  memcpy(&exchanged[current], &value, sizeof value); __syncthreads();
  memcpy(&value, &exchanged[other], sizeof value); __syncthreads(); return value;
}
template <class T> static T __shfl_xor_sync(unsigned, T v, unsigned mask) { return exchange(v, current ^ mask); }
template <class T> static T __shfl_down_sync(unsigned, T v, unsigned n) {
  return exchange(v, current % 32 + n < 32 ? current + n : current);
}

template <class To, class From> static To bits(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static int __float_as_int(float x) { return bits<int>(x); }
static unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
static float __int_as_float(int x) { return bits<float>(x); }
static float __uint_as_float(unsigned x) { return bits<float>(x); }
static long long __double_as_longlong(double x) { return bits<long long>(x); }
static double __longlong_as_double(long long x) { return bits<double>(x); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static void atomicMin(unsigned long long* at, unsigned long long x) { if (x < *at) *at = x; }
