// What the text of a kernel sees on the CPU: CUDA's words, and memory whose every access is checked.
// The checks stand in runtime.cpp, compiled once; a kernel compiles in the time of its own lines.
#pragma once
#include <math.h>
#include <string.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define SIM_INLINE inline __attribute__((always_inline))

struct Place { unsigned x, y, z; };
struct Memory;  // an argument, or an array of a block or thread

extern "C" {
extern Place sim_thread, sim_block, sim_threads, sim_blocks;
void* sim_read(Memory*, long long index, int elements, int atomic);
void* sim_write(Memory*, long long index, int elements, int atomic);
Memory* sim_shared(int line, long long count, int size, const char* name);
Memory* sim_local(int line, long long count, int size, const char* name);
void sim_barrier(int line);
void sim_grid_barrier(int line);
void sim_fence();
void sim_pause(int line);
void sim_atomic(void* place, int reads, int writes);
unsigned long long sim_base(Memory*);
void* sim_at(unsigned long long address, int bytes, int write, int atomic, int cached);
const void* sim_exchange(unsigned mask, const void* value, int size, int source, int line);
unsigned sim_ballot(unsigned mask, int predicate, int line);
int sim_lane();
void sim_narrow();
}

#define threadIdx sim_thread
#define blockIdx sim_block
#define blockDim sim_threads
#define gridDim sim_blocks

template <class T> struct Plain { typedef T type; };
template <class T> struct Plain<const T> { typedef T type; };

template <class T> struct Element {
  typedef typename Plain<T>::type Value;
  Memory* memory; long long index;
  SIM_INLINE operator Value() const { return *(Value*)sim_read(memory, index, 1, 0); }
  SIM_INLINE void operator=(Value value) const { *(T*)sim_write(memory, index, 1, 0) = value; }
  SIM_INLINE void operator=(const Element& other) const { *this = (Value)other; }
};

template <class T> struct Pointer {
  typedef typename Plain<T>::type Value;
  Memory* memory; long long start;
  SIM_INLINE Element<T> operator[](long long i) const { return {memory, start + i}; }
  SIM_INLINE Pointer operator+(long long i) const { return {memory, start + i}; }
};

// -- vectors: width elements at once, which CUDA wants aligned to their size ----------------------------------

template <class V, class T> SIM_INLINE V tr_load(Pointer<T> p, long long i) {
  V v; memcpy(&v, sim_read(p.memory, p.start + i, sizeof(V) / sizeof(T), 0), sizeof v); return v;
}
template <class V, class T> SIM_INLINE void tr_store(Pointer<T> p, long long i, V v) {
  memcpy(sim_write(p.memory, p.start + i, sizeof(V) / sizeof(T), 0), &v, sizeof v);
}

template <int N, class T, class U> SIM_INLINE void tr_load_wide(Pointer<T> x, long long k, Pointer<U> p, long long i) {
  T v[N]; memcpy(v, sim_read(p.memory, p.start + i, N, 0), sizeof v);
  for (int n = 0; n < N; ++n) x[k + n] = v[n];
}
template <int N, class T> SIM_INLINE void tr_store_wide(Pointer<T> p, long long i, Pointer<T> x, long long k) {
  T v[N]; for (int n = 0; n < N; ++n) v[n] = x[k + n];
  memcpy(sim_write(p.memory, p.start + i, N, 0), v, sizeof v);
}

template <class T> SIM_INLINE Pointer<T> tr_at(Pointer<T> p, long long i) { return p + i; }

// -- threads together -------------------------------------------------------------------------------------------

#define __syncthreads() sim_barrier(__LINE__)
#define __threadfence() sim_fence()
#define __nanosleep(time) sim_pause(__LINE__)
#define tr_grid_barrier(counter) sim_grid_barrier(__LINE__)

template <class T> SIM_INLINE T sim_shuffle(unsigned mask, T value, int source, int line) {
  T result; memcpy(&result, sim_exchange(mask, &value, sizeof value, source, line), sizeof result); return result;
}
#define __shfl_sync(mask, value, lane) sim_shuffle(mask, value, (int)(lane) & 31, __LINE__)
#define __shfl_xor_sync(mask, value, other) sim_shuffle(mask, value, sim_lane() ^ (int)(other), __LINE__)
#define __shfl_down_sync(mask, value, by) sim_shuffle(mask, value, sim_lane() + (int)(by), __LINE__)
#define __shfl_up_sync(mask, value, by) sim_shuffle(mask, value, sim_lane() - (int)(by), __LINE__)
#define __ballot_sync(mask, predicate) sim_ballot(mask, predicate, __LINE__)
#define __any_sync(mask, predicate) (sim_ballot(mask, predicate, __LINE__) != 0)
#define __all_sync(mask, predicate) (sim_ballot(mask, predicate, __LINE__) == (mask))

#define SIM_ATOMIC(name, next)                                                                   \
  template <class T, class U> SIM_INLINE T name(Pointer<T> p, U given) {                         \
    T* place = (T*)sim_write(p.memory, p.start, 1, 1); T old = *place, value = (T)given;         \
    *place = (T)(next); sim_atomic(place, 1, 1); return old;                                           \
  }
SIM_ATOMIC(atomicAdd, old + value)
SIM_ATOMIC(atomicMin, value < old ? value : old)
SIM_ATOMIC(atomicMax, old < value ? value : old)
SIM_ATOMIC(atomicExch, value)
SIM_ATOMIC(atomicOr, old | value)
template <class T> SIM_INLINE T tr_load_atomic(Pointer<T> p, long long i) {
  T* place = (T*)sim_read(p.memory, p.start + i, 1, 1); sim_atomic(place, 1, 0); return *place;
}
template <class T> SIM_INLINE void tr_store_atomic(Pointer<T> p, long long i, T value) {
  T* place = (T*)sim_write(p.memory, p.start + i, 1, 1); *place = value; sim_atomic(place, 0, 1);
}

// -- bits -------------------------------------------------------------------------------------------------------

template <class To, class From> static inline To bits(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static inline int __float_as_int(float x) { return bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
static inline float __int_as_float(int x) { return bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return bits<float>(x); }
static inline long long __double_as_longlong(double x) { return bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
