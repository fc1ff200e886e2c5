/*
 * Runs every test on every kernel that this CPU has. With LIBRARY_FROM_FILE the
 * functions come from the library that the first argument names, otherwise they
 * are linked in. A last argument is the seed.
 */
#define _GNU_SOURCE
#include "test.h"

#include <stdarg.h>
#include <time.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

#ifdef LIBRARY_FROM_FILE
#ifndef _WIN32
#include <dlfcn.h>
#endif

static void *look_up(void *handle, const char *name) {
#ifdef _WIN32
  void *found = (void *)GetProcAddress(handle, name);
#else
  void *found = dlsym(handle, name);
#endif
  if (!found) {
    fprintf(stderr, "the library has no %s\n", name);
    exit(1);
  }
  return found;
}

struct library library;

static void open_library(const char *path) {
#ifdef _WIN32
  void *handle = LoadLibraryA(path);
  const char *reason = "LoadLibrary failed";
#else
  void *handle = dlopen(path, RTLD_NOW);
  const char *reason = handle ? "" : dlerror();
#endif
  if (!handle) {
    fprintf(stderr, "%s: %s\n", path, reason);
    exit(1);
  }
  *(void **)&library.mask = look_up(handle, "wsframe_mask");
  *(void **)&library.mask_into = look_up(handle, "wsframe_mask_into");
  *(void **)&library.scan = look_up(handle, "wsframe_scan");
  *(void **)&library.cpu = look_up(handle, "wsframe_cpu");
  *(void **)&library.use_kernel = look_up(handle, "wsframe_use_kernel");
}
#else
struct library library = {
    wsframe_mask, wsframe_mask_into,  wsframe_scan,
    wsframe_cpu,  wsframe_use_kernel,
};
#endif

static unsigned long passed, failed;

void check(bool ok, const char *format, ...) {
  if (ok) {
    passed++;
    return;
  }
  if (failed++ < 20) {
    va_list arguments;
    va_start(arguments, format);
    printf("failed: ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
  }
}

/* xorshift64*: Marsaglia, "Xorshift RNGs", 2003; Vigna, 2016 */
static uint64_t random_state;

uint64_t random_64(void) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545f4914f6cdd1d;
}

uint32_t random_below(uint32_t limit) {
  return (uint32_t)((random_64() >> 32) * limit >> 32);
}

void random_bytes(uint8_t *bytes, size_t length) {
  for (size_t i = 0; i < length; i++)
    bytes[i] = (uint8_t)(random_64() >> 56);
}

struct guarded guarded(size_t at_least) {
#ifdef _WIN32
  const size_t page = 4096;
#else
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
#endif
  const size_t size = (at_least + page - 1) / page * page;
#ifdef _WIN32
  DWORD before;
  uint8_t *all = VirtualAlloc(NULL, size + 2 * page, MEM_COMMIT | MEM_RESERVE,
                              PAGE_READWRITE);
  const bool ok =
      all && VirtualProtect(all, page, PAGE_NOACCESS, &before) &&
      VirtualProtect(all + page + size, page, PAGE_NOACCESS, &before);
#else
  uint8_t *all = mmap(NULL, size + 2 * page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool ok = all != MAP_FAILED && mprotect(all, page, PROT_NONE) == 0 &&
                  mprotect(all + page + size, page, PROT_NONE) == 0;
#endif
  if (!ok) {
    fprintf(stderr, "no memory with unreadable ends\n");
    exit(1);
  }
  return (struct guarded){all + page, size};
}

static void test_kernel_choice(void) {
  const uint32_t cpu = library.cpu();
  const uint32_t best = library.use_kernel(0);
  check(best != 0 && (best & cpu) == best && (best & (best - 1)) == 0 &&
            (cpu & ~best) < best,
        "best kernel %u of %u", (unsigned)best, (unsigned)cpu);
  check(library.use_kernel(1u << 31) == best,
        "a kernel that does not exist changes nothing");
  check(library.use_kernel(cpu | 1u << 31) == best,
        "several bits change nothing");
}

int main(int count, char **arguments) {
  int next = 1;
#ifdef LIBRARY_FROM_FILE
  if (count < 2) {
    fprintf(stderr, "usage: %s LIBRARY [SEED]\n", arguments[0]);
    return 1;
  }
  open_library(arguments[next++]);
#endif
  random_state =
      count > next ? strtoull(arguments[next], NULL, 10) : (uint64_t)time(NULL);
  if (random_state == 0)
    random_state = 1;
  printf("seed %llu\n", (unsigned long long)random_state);

  test_kernel_choice();
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    if (!(library.cpu() & bit))
      continue;
    check(library.use_kernel(bit) == bit, "kernel %u runs", (unsigned)bit);
    printf("kernel %u\n", (unsigned)bit);
    test_mask();
    test_scan();
  }
  printf("%lu passed, %lu failed\n", passed, failed);
  return failed > 0 || passed == 0;
}
