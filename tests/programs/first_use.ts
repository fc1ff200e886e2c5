/** Prints what using the library throws, time after time; importing it throws nothing. */

import { backend, backends } from "../../src/backend/list.ts";
import { mask } from "../../src/mask.ts";

const uses = [
  () => mask(new Uint8Array(1), new Uint8Array([1, 2, 3, 4])),
  () => mask(new Uint8Array(10_000), new Uint8Array([1, 2, 3, 4])),
  backend,
];
const thrown = uses.map((use) => {
  try {
    use();
    return "nothing";
  } catch (error) {
    return String(error);
  }
});
backends(); // tells of all engines all the same
console.log(JSON.stringify(thrown));
