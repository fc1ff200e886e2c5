/** Reading what the runtimes report of a test run. */

import { describe, it } from "node:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { parseJUnit } from "./runner/junit.ts";

/** The same file under each runtime: a passes, b fails, c is skipped. */
const REPORTS: [runtime: string, fileSuites: boolean, xml: string][] = [
  [
    "Deno",
    true,
    `<testsuites name="deno test">
      <testsuite name="./tests/x_test.ts" tests="1">
        <testcase name="s" time="0.004"><failure message="1 test step failed">1 test step failed.</failure></testcase>
      </testsuite>
      <testsuite name="ext:deno_node/testing.ts" tests="3">
        <testcase name="s &gt; a" time="0.001"></testcase>
        <testcase name="s &gt; b"><failure message="m">Error: 1 &lt; 2&#10;&amp; so on</failure></testcase>
        <testcase name="s &gt; c"><skipped/></testcase>
      </testsuite>
    </testsuites>`,
  ],
  [
    "Bun",
    true,
    `<testsuites name="bun test">
      <testsuite name="tests/x_test.ts">
        <testsuite name="s">
          <testcase name="a" classname="s" />
          <testcase name="b"><failure type="Error" message="m">Error: 1 &lt; 2&#10;&amp; so on</failure></testcase>
          <testcase name="c"><skipped /></testcase>
        </testsuite>
      </testsuite>
    </testsuites>`,
  ],
  [
    "Node",
    false,
    `<testsuites>
      <testsuite name="s" failures="1">
        <testcase name="a" time="0.001" classname="test"/>
        <testcase name="b" failure="1 &lt; 2"><failure type="testCodeFailure" message="m">
[Error [ERR_TEST_FAILURE]: 1 &lt; 2] {
  code: 'ERR_TEST_FAILURE',
  cause: Error: 1 &lt; 2
  &amp; so on
      at internal (node:internal/test_runner/test:796:25)
}
</failure></testcase>
        <testcase name="c"><skipped type="skipped" message="true"/></testcase>
      </testsuite>
    </testsuites>`,
  ],
];

describe("parseJUnit", () => {
  for (const [runtime, fileSuites, xml] of REPORTS) {
    it(`reads what ${runtime} writes`, () => {
      const results = parseJUnit(xml, fileSuites);
      assertEquals(
        results.map(({ name, outcome }) => `${name} ${outcome}`),
        ["s > a passed", "s > b failed", "s > c skipped"],
      );
      assertEquals(
        results[1].detail.replace(/\n\s+/g, "\n"),
        "Error: 1 < 2\n& so on",
      );
    });
  }
  it("keeps a suite that only its own hook made fail", () => {
    const xml = `<testsuites><testsuite name="x">
      <testcase name="s"><failure message="before fails"></failure></testcase>
      <testcase name="s &gt; a"></testcase>
    </testsuite></testsuites>`;
    const results = parseJUnit(xml, true);
    assertEquals(results.map(({ outcome }) => outcome), ["failed", "passed"]);
    assertStringIncludes(results[0].detail, "before fails");
  });
  it("finds nothing in an empty report", () => {
    assertEquals(parseJUnit("", false), []);
  });
});
