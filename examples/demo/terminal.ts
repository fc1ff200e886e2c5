/**
 * Colours, and columns that fit: plain text when it is piped, or when NO_COLOR
 * asks for it.
 *
 * @module
 */

import process from "node:process";

const { stdout, env } = process;
const coloured = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";

/** Columns to fill; a file or a pipe gets a hundred. */
export const COLUMNS: number = Math.max(
  72,
  Math.min(stdout.columns || 100, 140),
);

/** Makes text look different on a terminal. */
export type Style = (text: string) => string;

function style(code: number): Style {
  return (text) => coloured ? `\x1b[${code}m${text}\x1b[0m` : text;
}

export const bold: Style = style(1);
export const dim: Style = style(2);
export const red: Style = style(31);
export const green: Style = style(32);
export const yellow: Style = style(33);
export const blue: Style = style(34);
export const magenta: Style = style(35);
export const cyan: Style = style(36);

/** Scripts whose letters take two columns, and symbols that do. */
const WIDE =
  /^(?:\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Emoji_Presentation}|\p{Emoji}\u{FE0F}|[\u3000-\u303F\uFF01-\uFF60])/u;
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Shortens text to so many columns; what it leaves out, an ellipsis shows. */
export function cut(text: string, columns: number): string {
  let used = 0, kept = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    used += WIDE.test(segment) ? 2 : 1;
    if (used > columns) return `${text.slice(0, kept)}…`;
    // The ellipsis needs a column of its own.
    if (used < columns) kept = index + segment.length;
  }
  return text;
}

/** What would move the cursor, change a colour or turn the direction of text. */
const CONTROLS =
  /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Text of a peer, made harmless, in quotation marks. */
export function quote(text: string): string {
  return `"${
    text.replaceAll(
      CONTROLS,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
    )
  }"`;
}

// Who pipes this into `head` has seen enough.
stdout.on("error", () => process.exit(1));

export function print(line = ""): void {
  stdout.write(`${line.trimEnd()}\n`);
}
