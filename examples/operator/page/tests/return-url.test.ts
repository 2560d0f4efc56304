import assert from "node:assert/strict";
import { test } from "node:test";

import { returnUrlOf } from "../src/model/return-url.js";

test("the page leads back to addresses of https, and of this machine", () => {
  for (const url of ["https://casino.example/lobby?from=game", "https://casino.example", "http://localhost:8080/", "http://localhost"]) {
    assert.equal(returnUrlOf(url), url);
  }
});

test("it leads nowhere else", () => {
  const refused = [
    ...[undefined, "", "javascript:alert(1)", "http://casino.example/", "https://user@casino.example/", "//casino.example/"],
    ...["https://casino.example/#part", "https://casino.example/ x", "http://localhost.evil.example/", "https://casino.example\n/"],
    ...["data:text/html,x", `https://casino.example/${"a".repeat(1024)}`, " https://casino.example/", "HTTPS://casino.example/\\"],
  ];
  for (const url of refused) assert.equal(returnUrlOf(url), undefined, String(url));
});
