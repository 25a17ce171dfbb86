// One kernel of every family that a GPU program has, or will have: what the simulator's checks are tried on.
typedef int i32; typedef long long i64; typedef unsigned int u32; typedef unsigned long long u64; typedef float f32;

struct __align__(16) f32x4 { f32 x, y, z, w; };

extern "C" __global__ void __launch_bounds__(128) scaled(f32* __restrict__ out, const f32* __restrict__ a, const f32* __restrict__ b, i64 n) {
  const i64 i = ((i64)blockIdx.x * 128 + threadIdx.x) * 4;
  if (i + 4 <= n) {
    const f32x4 x = tr_load<f32x4>(a, i);
    const f32x4 y = tr_load<f32x4>(b, i);
    const f32x4 z = {x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w};
    tr_store(out, i, z);
  } else {
    for (i64 k = i; k < n; ++k) out[k] = a[k] * b[k];
  }
}

static __device__ __forceinline__ f32 warp_sum(f32 x) {
  for (i32 step = 16; step; step /= 2) x = x + __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

extern "C" __global__ void __launch_bounds__(128) centred(f32* __restrict__ out, const f32* __restrict__ a, i32 rows, i32 width) {
  __shared__ f32 sums[4];
  __shared__ f32 mean[1];
  const i32 t = threadIdx.x;
  for (i32 row = blockIdx.x; row < rows; row += gridDim.x) {
    const i64 first = (i64)row * width;
    f32 sum = 0;
    for (i32 i = t; i < width; i += 128) sum = sum + a[first + i];
    sum = warp_sum(sum);
    if (t % 32 == 0) sums[t / 32] = sum;
    __syncthreads();
    if (t == 0) mean[0] = (sums[0] + sums[1] + sums[2] + sums[3]) / width;
    __syncthreads();
    const f32 m = mean[0];
    for (i32 i = t; i < width; i += 128) out[first + i] = a[first + i] - m;
  }
}

extern "C" __global__ void __launch_bounds__(256) turned(f32* __restrict__ out, const f32* __restrict__ a, i32 rows, i32 columns) {
  __shared__ f32 tile[1055];
  const i32 x = threadIdx.x % 32, y = threadIdx.x / 32, tiles = (columns + 31) / 32;
  const i32 row = (i32)(blockIdx.x / tiles) * 32, column = (i32)(blockIdx.x % tiles) * 32;
  for (i32 k = y; k < 32; k += 8)
    if (row + k < rows && column + x < columns) tile[33 * k + x] = a[(i64)(row + k) * columns + column + x];
  __syncthreads();
  for (i32 k = y; k < 32; k += 8)
    if (row + x < rows && column + k < columns) out[(i64)(column + k) * rows + row + x] = tile[33 * x + k];
}

extern "C" __global__ void __launch_bounds__(64) total(f32* __restrict__ out, f32* __restrict__ parts, u32* __restrict__ ticket, const f32* __restrict__ a, i64 n) {
  __shared__ f32 sums[2];
  __shared__ u32 last[1];
  const i32 t = threadIdx.x;
  f32 sum = 0;
  for (i64 i = (i64)blockIdx.x * 64 + t; i < n; i += (i64)gridDim.x * 64) sum = sum + a[i];
  sum = warp_sum(sum);
  if (t % 32 == 0) sums[t / 32] = sum;
  __syncthreads();
  if (t == 0) {
    parts[blockIdx.x] = sums[0] + sums[1];
    __threadfence();
    last[0] = atomicAdd(tr_at(ticket, 0), 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last[0]) {
    if (t == 0) {
      f32 whole = 0;
      for (u32 i = 0; i < gridDim.x; ++i) whole = whole + parts[i];
      out[0] = whole;
    }
  }
}

extern "C" __global__ void __launch_bounds__(64) running(i32* __restrict__ out, u64* __restrict__ state, u32* __restrict__ ticket, const i32* __restrict__ a, i64 n) {
  __shared__ u32 order[1];
  __shared__ i32 sums[2];
  __shared__ i32 before[1];
  const i32 t = threadIdx.x, lane = t % 32;
  if (t == 0) order[0] = atomicAdd(tr_at(ticket, 0), 1u);
  __syncthreads();
  const u32 b = order[0];
  const i64 i = (i64)b * 64 + t;
  i32 sum = i < n ? (i32)a[i] : 0;
  for (i32 step = 1; step < 32; step *= 2) {
    const i32 left = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum = sum + left;
  }
  if (lane == 31) sums[t / 32] = sum;
  __syncthreads();
  if (t >= 32) sum = sum + sums[0];
  if (t == 63) {
    i32 sofar = 0;
    if (b > 0) {
      u64 word = tr_load_atomic(state, b - 1);
      while (word >> 32 == 0) {
        __nanosleep(20);
        word = tr_load_atomic(state, b - 1);
      }
      sofar = (i32)(u32)word;
    }
    tr_store_atomic(state, b, (u64)1 << 32 | (u32)(sofar + sum));
    before[0] = sofar;
  }
  __syncthreads();
  if (i < n) out[i] = before[0] + sum;
}

extern "C" __global__ void __launch_bounds__(64) counted(u32* __restrict__ out, const i32* __restrict__ a, i32 n) {
  __shared__ u32 bins[16];
  const i32 t = threadIdx.x;
  if (t < 16) bins[t] = 0;
  __syncthreads();
  const i32 i = (i32)blockIdx.x * 64 + t;
  if (i < n) atomicAdd(tr_at(bins, a[i] & 15), 1u);
  __syncthreads();
  if (t < 16) atomicAdd(tr_at(out, t), (u32)bins[t]);
}

extern "C" __global__ void __launch_bounds__(32) smoothed(f32* __restrict__ u, f32* __restrict__ v, u32* __restrict__ grid, i32 n, i32 rounds) {
  const i32 i = (i32)blockIdx.x * 32 + threadIdx.x;
  for (i32 k = 0; k < rounds; ++k) {
    if (i < n) v[i] = ((i > 0 ? (f32)u[i - 1] : 0.0f) + (i + 1 < n ? (f32)u[i + 1] : 1.0f)) * 0.5f;
    tr_grid_barrier(grid);
    if (i < n) u[i] = (f32)v[i];
    tr_grid_barrier(grid);
  }
}
