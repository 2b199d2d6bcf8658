// Signs in with a key: typed, or from the address after the sign #, which is never sent to a server.

import { ask, mountBar, place, ready, say } from "./common.js";

const next = () => {
  const to = new URLSearchParams(location.search).get("to") ?? "/";
  // Parsed, not matched: a browser leaves out tabs and line breaks, and reads \\ as /.
  const isOurs = to.startsWith("/") && URL.canParse(to, location.origin) && new URL(to, location.origin).origin === location.origin;
  return isOurs ? to : "/";
};

async function signIn(key) {
  try {
    await ask("/api/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key }),
    });
    location.replace(next());
  } catch (error) {
    say(error.message);
  }
}

place("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(place("key").value);
});
const given = /^#key=(.+)$/.exec(location.hash);
if (given) {
  history.replaceState(null, "", location.pathname + location.search);
  await signIn(decodeURIComponent(given[1]));
}
await mountBar("sign-in");
place("key").focus();
ready();
