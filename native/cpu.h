/* The choice between the kernels of x86-64. Other targets have one. */

#include <cpuid.h>

static uint32_t detect(void) {
  const uint32_t avx_and_osxsave = 1u << 28 | 1u << 27;
  const uint32_t avx2 = 1u << 5;
  const uint32_t xmm_and_ymm_state = 1u << 1 | 1u << 2;
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
    return WSFRAME_CPU_SSE2;
  if ((ecx & avx_and_osxsave) != avx_and_osxsave)
    return WSFRAME_CPU_SSE2;
  /* the CPU has the registers; does the system save them? */
  __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  if ((eax & xmm_and_ymm_state) != xmm_and_ymm_state)
    return WSFRAME_CPU_SSE2;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
    return WSFRAME_CPU_SSE2;
  return ebx & avx2 ? WSFRAME_CPU_SSE2 | WSFRAME_CPU_AVX2 : WSFRAME_CPU_SSE2;
}

/*
 * 0 until the first call. Threads that come first together find the same
 * answer, so the accesses need no order among themselves.
 */
static _Atomic uint32_t kernel_in_use;

static __attribute__((noinline, cold)) uint32_t choose_kernel(void) {
  const uint32_t kernel =
      detect() & WSFRAME_CPU_AVX2 ? WSFRAME_CPU_AVX2 : WSFRAME_CPU_SSE2;
  __c11_atomic_store(&kernel_in_use, kernel, __ATOMIC_RELAXED);
  return kernel;
}

static inline int use_avx2(void) {
  uint32_t kernel = __c11_atomic_load(&kernel_in_use, __ATOMIC_RELAXED);
  if (kernel == 0)
    kernel = choose_kernel();
  return kernel == WSFRAME_CPU_AVX2;
}
