/**
 * A function compiled anew. Closures that one function makes share what the
 * engine has learned about their calls, so contenders made that way would slow
 * each other down; a program that uses one of them would never see that.
 *
 * V8 compiles the same text but once, so contenders of one text do share their
 * call sites there. That is for the better: their calls stay calls, where a loop
 * of one nanosecond would become a part of the loop that times it.
 *
 * @param make Makes the function from what it needs, which is all it may use
 */
export function fresh<T>(make: T): T {
  return new Function(`return ${make}`)();
}
