/** Makes every text another one: V8 compiles the same text once, and all share that. */
let compiled = 0;

/**
 * A function compiled anew. Closures that one function makes share what the
 * engine has learned about their calls, so contenders made that way would slow
 * each other down; a program that uses one of them would never see that.
 *
 * @param make Makes the function from what it needs, which is all it may use
 */
export function fresh<T>(make: T): T {
  return new Function(`return /* ${++compiled} */ ${make}`)();
}
