/**
 * Starts workers, all at once, and prints what each tells first:
 *
 *     crowd.ts COUNT PROGRAM
 */

import process from "node:process";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

const [count, program] = process.argv.slice(2);
const told = Array.from({ length: Number(count) }, async () => {
  const worker = new Worker(pathToFileURL(program!));
  const message = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  await worker.terminate();
  return message;
});
Promise.all(told).then((messages) => console.log(JSON.stringify(messages)));
