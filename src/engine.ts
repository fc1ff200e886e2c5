/**
 * What differs between JavaScript engines, told once.
 *
 * @module
 */

/**
 * Whether a mistake gets V8's own words. A stack trace tells, too, but takes up to 2 ms to
 * be written; so does, in a large file, any throw under Deno.
 */
function speaksLikeV8(): boolean {
  try {
    "".repeat(-1);
  } catch (error) {
    return (error as Error).message === "Invalid count value: -1";
  }
  return false;
}

/**
 * Whether this is V8. There BigUint64Array arithmetic becomes machine words, and a view
 * into a block costs less than memory of its own; in JavaScriptCore 64-bit words are
 * heap BigInts, 40 times slower, and a small typed array of its own costs less than a
 * view.
 */
export const V8: boolean = "Deno" in globalThis || speaksLikeV8();
