/*
 * Loads and stores at any alignment, and masking of ranges shorter than the
 * widest vectors. Every target is little-endian.
 */

typedef uint16_t any16 __attribute__((aligned(1), may_alias));
typedef uint32_t any32 __attribute__((aligned(1), may_alias));
typedef uint64_t any64 __attribute__((aligned(1), may_alias));
typedef uint32_t any128 __attribute__((vector_size(16), aligned(1), may_alias));

static inline uint32_t load_32(const uint8_t *at) { return *(const any32 *)at; }

static inline uint32_t load_big_16(const uint8_t *at) {
  return __builtin_bswap16(*(const volatile any16 *)at);
}

static inline uint64_t load_big_64(const uint8_t *at) {
  return __builtin_bswap64(*(const volatile any64 *)at);
}

/* The key as the byte at this offset meets it. */
static inline uint32_t rotate(uint32_t key, size_t offset) {
  return __builtin_rotateright32(key, (uint32_t)offset * 8 % 32);
}

/* All loads come before all stores, so the ranges may overlap in any way. */
static inline void mask_short(uint8_t *target, const uint8_t *source,
                              size_t length, uint32_t key) {
  if (length >= 8) {
    const size_t tail = length - 8;
    const uint64_t key_64 = (uint64_t)key << 32 | key;
    const uint64_t tail_key = __builtin_rotateright64(key_64, tail * 8 % 64);
    const uint64_t first = *(const any64 *)source ^ key_64;
    const uint64_t last = *(const any64 *)(source + tail) ^ tail_key;
    *(any64 *)target = first;
    *(any64 *)(target + tail) = last;
  } else if (length >= 4) {
    const size_t tail = length - 4;
    const uint32_t first = load_32(source) ^ key;
    const uint32_t last = load_32(source + tail) ^ rotate(key, tail);
    *(any32 *)target = first;
    *(any32 *)(target + tail) = last;
  } else if (length > 0) {
    /* 1: bytes 0 0 0, 2: 0 1 1, 3: 0 1 2 */
    const size_t middle = length / 2;
    const size_t last = length - 1;
    const uint8_t a = source[0] ^ (uint8_t)key;
    const uint8_t b = source[middle] ^ (uint8_t)(key >> middle * 8);
    const uint8_t c = source[last] ^ (uint8_t)(key >> last * 8);
    target[0] = a;
    target[middle] = b;
    target[last] = c;
  }
}

static inline void mask_16_to_32(uint8_t *target, const uint8_t *source,
                                 size_t length, uint32_t key) {
  const size_t tail = length - 16;
  const any128 first = *(const any128 *)source ^ key;
  const any128 last = *(const any128 *)(source + tail) ^ rotate(key, tail);
  *(any128 *)target = first;
  *(any128 *)(target + tail) = last;
}

/*
 * From so many bytes on, more than the nearest cache holds, a range in place is
 * masked downwards: 1.2 to 1.3 times as fast at 48 to 96 KiB where the bytes
 * were written just before, 1.05 to 1.1 at 256 KiB and 1 MiB, and as fast where
 * they were not (Sapphire Rapids, AVX2). At 32 KiB it is 3 to 6 % slower.
 */
static const size_t MIN_DOWN_LENGTH = 0xa000;
