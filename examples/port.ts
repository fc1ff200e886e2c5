/**
 * Ports of the command line and of the environment.
 *
 * @module
 */

import process from "node:process";

/** The port that `text` names; ends the program where it names none. */
export function portOf(text: string): number {
  const port = Number(text || NaN);
  if (Number.isInteger(port) && port >= 0 && port <= 65535) return port;
  console.error(`Expected a port from 0 to 65535, got "${text}"`);
  process.exit(1);
}
