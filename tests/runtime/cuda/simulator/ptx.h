// What translated PTX sees: registers are words of bits, and every operation says how it reads them.
#pragma once
#include "kernel.h"

typedef signed char s8; typedef short s16; typedef int s32; typedef long long s64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef float f32; typedef double f64; typedef _Float16 f16;

template <class To, class From> static inline To as(From x) {  // the low bits, or the value where a bool is in play
  To y = 0; memcpy(&y, &x, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From)); return y;
}
template <class T> static inline T least(T a, T b) { return b != b ? a : a != a ? b : a == b ? (signbit((f64)a) ? a : b) : b < a ? b : a; }
template <class T> static inline T most(T a, T b) { return b != b ? a : a != a ? b : a == b ? (signbit((f64)a) ? b : a) : a < b ? b : a; }
template <class T> static inline T shifted_left(T a, u32 n) { return n < 8 * sizeof(T) ? a << n : 0; }
template <class T> static inline T shifted_right(T a, u32 n) {
  return n < 8 * sizeof(T) ? a >> n : a < 0 ? (T)-1 : (T)0;
}
template <class T> static inline T quotient(T a, T b) { return b == (T)-1 && (T)-1 < 0 ? -a : a / b; }
template <class T> static inline T rest(T a, T b) { return b == (T)-1 && (T)-1 < 0 ? 0 : a % b; }
template <class To, class From> static inline To truncated(From x) {  // saturates; NaN gives 0
  const From top = (To)-1 < 0 ? ldexp((From)1, 8 * sizeof(To) - 1) : ldexp((From)1, 8 * sizeof(To));
  const From low = (To)-1 < 0 ? -top : 0;
  const To last = (To)-1 < 0 ? (To)(((To)1 << (8 * sizeof(To) - 2)) - 1) * 2 + 1 : (To)-1;
  return x != x ? 0 : x >= top ? last : x <= low ? ((To)-1 < 0 ? (To)(-last - 1) : 0) : (To)x;
}
static inline u64 high_part(u64 a, u64 b) { return (unsigned __int128)a * b >> 64; }
static inline u64 high_part(s64 a, s64 b) { return (__int128)a * b >> 64; }
static inline u32 high_part(u32 a, u32 b) { return (u64)a * b >> 32; }
static inline u32 high_part(s32 a, s32 b) { return (s64)a * b >> 32; }
static inline u32 chosen_bytes(u32 a, u32 b, u32 which) {
  u64 both = (u64)b << 32 | a; u32 r = 0;
  for (int i = 0; i < 4; ++i) {
    u32 s = which >> 4 * i & 15; u32 byte = both >> 8 * (s & 7) & 255;
    r |= (s & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
  }
  return r;
}
static inline u32 any_of_three(u32 a, u32 b, u32 c, u32 table) {
  u32 r = 0;
  for (int i = 0; i < 32; ++i) r |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
  return r;
}
static inline u32 exchanged(u32 value, int source, u32 mask, bool& inside) {
  inside = source >= 0 && source < 32;
  u32 r; memcpy(&r, sim_exchange(mask, &value, 4, source, 0), 4); return r;
}
template <class T> static inline T loaded(u64 address, int atomic, int cached) {
  void* place = sim_at(address, sizeof(T), 0, atomic, cached); T x; memcpy(&x, place, sizeof x);
  if (atomic) sim_atomic(place, 1, 0);
  return x;
}
template <class T> static inline void stored(u64 address, T x, int atomic) {
  void* place = sim_at(address, sizeof(T), 1, atomic, 0); memcpy(place, &x, sizeof x);
  if (atomic) sim_atomic(place, 0, 1);
}
template <class T> static inline T added(T a, T b) { return a + b; }
template <class T> static inline T either(T a, T b) { return a | b; }
template <class T> static inline T both(T a, T b) { return a & b; }
template <class T> static inline T second(T, T b) { return b; }
template <class T> static inline T changed(u64 address, T (*change)(T, T), T by) {
  T* place = (T*)sim_at(address, sizeof(T), 1, 1, 0); T old = *place; *place = change(old, by);
  sim_atomic(place, 1, 1); return old;
}
