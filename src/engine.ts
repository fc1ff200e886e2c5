/**
 * What differs between JavaScript engines, told once.
 *
 * @module
 */

/**
 * Whether this is V8, told by the form of its stack traces, which Bun copies. In V8
 * BigUint64Array arithmetic becomes machine words, and a view into a block costs less
 * than memory of its own; in JavaScriptCore 64-bit words are heap BigInts, 40 times
 * slower, and a small typed array of its own costs less than a view.
 */
export const V8: boolean = !("Bun" in globalThis) &&
  String(new Error("x").stack).startsWith("Error: x\n    at ");
