#include "wsframe.h"

#include <stddef.h>

#include "bytes.h"
#include "header.h"

#if defined(__x86_64__)

#include "cpu.h"

#define KERNEL(name) name##_sse2
#define WIDTH 16
#include "kernel.h"

/* the compiler ends these functions in VZEROUPPER */
#pragma clang attribute push(__attribute__((target("avx2"))),                  \
                             apply_to = function)
#define KERNEL(name) name##_avx2
#define WIDTH 32
#include "kernel.h"
#pragma clang attribute pop

/* a branch to each, not a pointer to either: an indirect call costs more */
#define CALL(name, ...)                                                        \
  (use_avx2() ? name##_avx2(__VA_ARGS__) : name##_sse2(__VA_ARGS__))

#elif defined(__aarch64__) || defined(__wasm_simd128__)

#define KERNEL(name) name##_one
#define WIDTH 16
#include "kernel.h"

#define CALL(name, ...) name##_one(__VA_ARGS__)

#else
#error "no kernel for this target"
#endif

#ifdef _WIN32
/* what the compiler asks of whoever uses floating point there */
const int _fltused = 0;
#endif

/* As numbers: FFIs pass NULL for an empty view, to which nothing is added. */
static uint8_t *at(const uint8_t *bytes, double offset) {
  return (uint8_t *)((uintptr_t)bytes + (size_t)(int64_t)offset);
}

void wsframe_mask(uint8_t *bytes, double start, double length, int32_t key) {
  bytes = at(bytes, start);
  CALL(mask, bytes, bytes, (size_t)(int64_t)length, (uint32_t)key);
}

void wsframe_mask_into(uint8_t *target, double target_start,
                       const uint8_t *source, double source_start,
                       double length, int32_t key) {
  CALL(mask, at(target, target_start), at(source, source_start),
       (size_t)(int64_t)length, (uint32_t)key);
}

uint32_t wsframe_scan(const uint8_t *source, double start, double length,
                      uint8_t *target, double target_start, uint32_t *table,
                      uint32_t words, uint32_t flags,
                      double max_payload_length) {
  if (words < 4)
    return 0;
  return CALL(scan, at(source, start), (size_t)(int64_t)length,
              target ? at(target, target_start) : NULL, table, words / 4 - 1,
              flags, (uint64_t)(int64_t)max_payload_length);
}

uint32_t wsframe_cpu(void) {
#if defined(__x86_64__)
  return detect();
#elif defined(__aarch64__)
  return WSFRAME_CPU_NEON;
#else
  return WSFRAME_CPU_SIMD128;
#endif
}

uint32_t wsframe_use_kernel(uint32_t kernel) {
#if defined(__x86_64__)
  if (kernel == 0)
    return choose_kernel();
  const int is_one_bit = (kernel & (kernel - 1)) == 0;
  if (is_one_bit && (kernel & detect()))
    __c11_atomic_store(&kernel_in_use, kernel, __ATOMIC_RELAXED);
  return use_avx2() ? WSFRAME_CPU_AVX2 : WSFRAME_CPU_SSE2;
#else
  (void)kernel;
  return wsframe_cpu();
#endif
}
