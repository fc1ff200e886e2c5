/**
 * Says what a process of its own gets: the engines, the one in use, and whether it
 * masks rightly. Tests start it with the permissions and settings they are about.
 */

import { backend, backends } from "../../src/backend/list.ts";
import { mask } from "../../src/mask.ts";

const bytes = new Uint8Array(100_000);
mask(bytes, new Uint8Array([1, 2, 3, 4]));
const right = bytes.every((byte, i) => byte === 1 + i % 4);
console.log(JSON.stringify({ used: backend(), right, backends: backends() }));
