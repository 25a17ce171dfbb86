// What a device needs before families.cu: the words that the simulator has of its own.
template <class V, class T> static __device__ __forceinline__ V tr_load(const T* p, long long i) { return *(const V*)(p + i); }
template <class V, class T> static __device__ __forceinline__ void tr_store(T* p, long long i, V v) { *(V*)(p + i) = v; }
template <class T> static __device__ __forceinline__ T* tr_at(T* p, long long i) { return p + i; }

template <class T> static __device__ __forceinline__ T tr_load_atomic(T* p, long long i) {
  T v;
  if (sizeof(T) == 8) asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(*(unsigned long long*)&v) : "l"(p + i) : "memory");
  else asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(*(unsigned*)&v) : "l"(p + i) : "memory");
  return v;
}
static __device__ __forceinline__ void tr_store_atomic(unsigned long long* p, long long i, unsigned long long v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(p + i), "l"(v) : "memory");
}

// Blocks count up; the last of a round lets all go on. The counter starts at 0 and is never set back.
static __device__ __forceinline__ void tr_grid_barrier(unsigned* counter) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned goal = (atomicAdd(counter, 1u) / gridDim.x + 1) * gridDim.x;
    while ((int)(tr_load_atomic(counter, 0) - goal) < 0) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
}
