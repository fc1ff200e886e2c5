/** Prints which engines the `./web` export has, and which one it uses. */

import { backend, backends } from "../../src/web.ts";

const names = backends().map(({ name }) => name);
console.log(JSON.stringify({ used: backend().name, names }));
