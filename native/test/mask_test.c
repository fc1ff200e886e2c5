/* Masking, in place and into other memory, against one byte at a time. */
#include "test.h"

static uint8_t key_byte(int32_t key, size_t i) {
  return (uint8_t)((uint32_t)key >> 8 * (i & 3));
}

/* size bytes at an alignment, with bytes around them that must stay */
static void masks_in_place(uint8_t *around, size_t around_size, size_t start,
                           size_t length) {
  static uint8_t before[1 << 17];
  const int32_t key = (int32_t)random_64();
  random_bytes(around, around_size);
  memcpy(before, around, around_size);
  library.mask(around, (double)start, (double)length, key);
  for (size_t i = 0; i < length; i++)
    before[start + i] ^= key_byte(key, i);
  check(memcmp(before, around, around_size) == 0,
        "mask of %zu bytes at offset %zu", length, start);
}

static void test_sizes_and_alignments(void) {
  static _Alignas(64) uint8_t bytes[64 + 1024 + 64];
  /* phases are rotated keys, and every key here is random */
  for (size_t length = 0; length <= 1024; length++) {
    for (size_t alignment = 0; alignment < 32; alignment++) {
      masks_in_place(bytes, alignment + length + 64, alignment + 8, length);
    }
  }
  static _Alignas(64) uint8_t many[100000];
  for (int i = 0; i < 200; i++) {
    masks_in_place(many, sizeof many, random_below(64),
                   random_below(sizeof many - 64));
  }
}

static void test_mask_at_page_ends(const struct guarded *page) {
  for (size_t length = 0; length <= 1024; length++) {
    masks_in_place(page->bytes, length + 64, 0, length);
    uint8_t *const around = page->bytes + page->size - length - 64;
    masks_in_place(around, length + 64, 64, length);
  }
}

/* what is masked downwards */
static void test_long_at_page_ends(const struct guarded *pages) {
  for (size_t cut = 0; cut < 80; cut++) {
    const size_t length = pages->size - cut;
    masks_in_place(pages->bytes, pages->size, 0, length);
    masks_in_place(pages->bytes, pages->size, cut, length);
  }
}

static void test_far_offsets(void) {
  static uint8_t bytes[300];
  const double far[] = {2147483647.0, 2147483648.0, 4294967296.0,
                        1099511627779.0};
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    if (sizeof(void *) < 8)
      return;
    const int32_t key = (int32_t)random_64();
    /* the address before the buffer is only a number here */
    uint8_t *base = (uint8_t *)((uintptr_t)bytes - (uintptr_t)far[i]);
    memset(bytes, 0, sizeof bytes);
    library.mask(base, far[i], sizeof bytes, key);
    bool ok = true;
    for (size_t k = 0; k < sizeof bytes; k++)
      ok = ok && bytes[k] == key_byte(key, k);
    check(ok, "mask at offset %.0f", far[i]);
    library.mask_into(base, far[i], base, far[i], sizeof bytes, key);
    ok = true;
    for (size_t k = 0; k < sizeof bytes; k++)
      ok = ok && bytes[k] == 0;
    check(ok, "mask_into at offset %.0f", far[i]);
  }
}

static void masks_into(uint8_t *memory, size_t size, size_t to, size_t from,
                       size_t length) {
  static uint8_t expected[1 << 15], source[1 << 15];
  const int32_t key = (int32_t)random_64();
  random_bytes(memory, size);
  memcpy(expected, memory, size);
  memcpy(source, memory + from, length);
  for (size_t i = 0; i < length; i++)
    expected[to + i] = source[i] ^ key_byte(key, i);
  library.mask_into(memory, (double)to, memory, (double)from, (double)length,
                    key);
  check(memcmp(expected, memory, size) == 0,
        "mask_into of %zu bytes from %zu to %zu", length, from, to);
}

static void test_overlaps(const struct guarded *page) {
  static _Alignas(64) uint8_t memory[20000];
  for (size_t length = 0; length <= 400; length += length < 70 ? 1 : 7) {
    for (size_t distance = 0; distance <= 140; distance++) {
      masks_into(memory, distance + length + 40, 3 + distance, 3, length);
      masks_into(memory, distance + length + 40, 3, 3 + distance, length);
    }
  }
  for (int i = 0; i < 2000; i++) {
    const size_t length = random_below(9000);
    masks_into(memory, sizeof memory, random_below(9000), random_below(9000),
               length);
  }
  for (size_t length = 0; length <= 1024; length++) {
    const size_t end = page->size - length;
    masks_into(page->bytes, page->size, 0, end, length);
    masks_into(page->bytes, page->size, end, 0, length);
  }
}

static void test_nothing(void) {
  library.mask(NULL, 0, 0, 1);
  library.mask_into(NULL, 0, NULL, 0, 0, 1);
  check(true, "length 0 without memory");
}

void test_mask(void) {
  static struct guarded page, pages;
  if (!page.bytes) {
    page = guarded(4096);
    pages = guarded(0xb000);
  }
  test_nothing();
  test_sizes_and_alignments();
  test_mask_at_page_ends(&page);
  test_long_at_page_ends(&pages);
  test_far_offsets();
  test_overlaps(&page);
}
