/*
 * The Node-API door. The functions of Node-API are declared here instead of
 * included, and weak: the same library opens where none of them exists (Deno,
 * Bun), as long as nobody calls napi_register_module_v1 there.
 *
 * Each argument adds to what a call costs (a number 4 ns), so numbers do
 * not travel as arguments: they are read from a block of doubles that the
 * caller hands over once, as `exports.block`, and fills before each call.
 *
 * The caller has checked every range: asking a view for its length costs 3 ns,
 * a tenth of a call of mask, so only scan does. What is no typed array, though
 * it looks like one (a proxy), is a TypeError.
 *
 * There is no state here: each worker opens a library of its own with its own
 * block, which reaches the functions as their data pointer.
 *
 * On Windows the symbols of node.exe cannot be weak; the door is not built
 * there.
 */
#ifndef _WIN32

#include <stddef.h>

#include "wsframe.h"

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef struct napi_ref__ *napi_ref;
typedef int napi_status; /* 0 is napi_ok */
typedef int napi_typedarray_type;
typedef napi_value (*napi_callback)(napi_env, napi_callback_info);

#define NAPI extern __attribute__((weak))
NAPI napi_status napi_get_cb_info(napi_env, napi_callback_info, size_t *,
                                  napi_value *, napi_value *, void **);
NAPI napi_status napi_get_typedarray_info(napi_env, napi_value,
                                          napi_typedarray_type *, size_t *,
                                          void **, napi_value *, size_t *);
NAPI napi_status napi_get_named_property(napi_env, napi_value, const char *,
                                         napi_value *);
NAPI napi_status napi_set_named_property(napi_env, napi_value, const char *,
                                         napi_value);
NAPI napi_status napi_create_function(napi_env, const char *, size_t,
                                      napi_callback, void *, napi_value *);
NAPI napi_status napi_throw_type_error(napi_env, const char *, const char *);
NAPI napi_status napi_create_reference(napi_env, napi_value, uint32_t,
                                       napi_ref *);

/* Doubles in the block: at most five arguments, and the result after them. */
enum { RESULT = 5, BLOCK_LENGTH = 6 };

typedef struct {
  void *data;
  double length; /* in elements */
} view;

/* A value that is no typed array (null, for one) is a view of nothing. */
static view view_of(napi_env env, napi_value value) {
  size_t length = 0;
  void *data = NULL;
  if (napi_get_typedarray_info(env, value, NULL, &length, &data, NULL, NULL) !=
      0) {
    return (view){NULL, 0};
  }
  return (view){data, (double)length};
}

/* The bytes of a typed array; throws and is false for any other value. */
static int bytes_of(napi_env env, napi_value value, void **data) {
  if (napi_get_typedarray_info(env, value, NULL, NULL, data, NULL, NULL) == 0)
    return 1;
  napi_throw_type_error(env, NULL, "Expected bytes in a Uint8Array");
  return 0;
}

/* The arguments of a call; returns the block. Missing ones are undefined. */
static double *arguments(napi_env env, napi_callback_info info, size_t count,
                         napi_value *values) {
  void *block = NULL;
  napi_get_cb_info(env, info, &count, values, NULL, &block);
  return block;
}

/* False for NaN, too. */
static int inside(view range, double start, double length) {
  return start >= 0 && length >= 0 && start + length <= range.length;
}

/* mask(bytes); block: start, length, key */
static napi_value mask(napi_env env, napi_callback_info info) {
  napi_value values[1];
  double *block = arguments(env, info, 1, values);
  void *bytes;
  if (bytes_of(env, values[0], &bytes)) {
    wsframe_mask(bytes, block[0], block[1], (int32_t)block[2]);
  }
  return NULL;
}

/* maskInto(target, source); block: target start, source start, length, key */
static napi_value mask_into(napi_env env, napi_callback_info info) {
  napi_value values[2];
  double *block = arguments(env, info, 2, values);
  void *target, *source;
  if (bytes_of(env, values[0], &target) && bytes_of(env, values[1], &source)) {
    wsframe_mask_into(target, block[0], source, block[1], block[2],
                      (int32_t)block[3]);
  }
  return NULL;
}

/*
 * scan(source, target or null, table);
 * block: start, length, target start, flags, longest payload
 */
static napi_value scan(napi_env env, napi_callback_info info) {
  napi_value values[3];
  double *block = arguments(env, info, 3, values);
  view source = view_of(env, values[0]);
  view target = view_of(env, values[1]);
  view table = view_of(env, values[2]);
  block[RESULT] = 0;
  if (inside(source, block[0], block[1]) && table.length >= 4 &&
      (target.data == NULL || inside(target, block[2], block[1]))) {
    block[RESULT] = wsframe_scan(source.data, block[0], block[1], target.data,
                                 block[2], table.data, (uint32_t)table.length,
                                 (uint32_t)block[3], block[4]);
  } else {
    napi_throw_type_error(env, NULL, "Expected bytes in a Uint8Array");
  }
  return NULL;
}

static napi_value cpu(napi_env env, napi_callback_info info) {
  double *block = arguments(env, info, 0, NULL);
  block[RESULT] = wsframe_cpu();
  return NULL;
}

/* block: kernel */
static napi_value use_kernel(napi_env env, napi_callback_info info) {
  double *block = arguments(env, info, 0, NULL);
  block[RESULT] = wsframe_use_kernel((uint32_t)block[0]);
  return NULL;
}

static void add(napi_env env, napi_value exports, const char *name,
                napi_callback function, void *block) {
  napi_value value;
  if (napi_create_function(env, name, (size_t)-1, function, block, &value) ==
      0) {
    napi_set_named_property(env, exports, name, value);
  }
}

__attribute__((visibility("default"))) napi_value
napi_register_module_v1(napi_env env, napi_value exports);

/* Without a block of the right length no function is added. */
napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  napi_value value;
  napi_ref forever; /* the block lives as long as the functions do */
  if (napi_get_named_property(env, exports, "block", &value) != 0) {
    return exports;
  }
  view block = view_of(env, value);
  if (block.length != BLOCK_LENGTH ||
      napi_create_reference(env, value, 1, &forever) != 0) {
    return exports;
  }
  add(env, exports, "mask", mask, block.data);
  add(env, exports, "maskInto", mask_into, block.data);
  add(env, exports, "scan", scan, block.data);
  add(env, exports, "cpu", cpu, block.data);
  add(env, exports, "useKernel", use_kernel, block.data);
  return exports;
}

#else

/* A translation unit must not be empty. */
typedef int wsframe_no_node_api;

#endif
