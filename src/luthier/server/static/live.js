// Server-sent events. The stream of a hidden page is closed, because a browser allows only a few connections per host.

import { get } from "./api.js";
import { $, h } from "./dom.js";

const LOOK_EVERY_MS = 5000;
const ASLEEP_AFTER_MS = 30000;

/** Receive the events at `address()`; `handlers` maps event names to functions. `onReturn` is called after a reconnect. */
export function follow(address, handlers, onReturn = () => {}) {
  let source = null;
  let ended = false;
  let wasOpen = false;

  function open() {
    if (source !== null || ended || document.hidden) return;
    source = new EventSource(address());
    source.addEventListener("open", () => {
      offline(false);
      if (wasOpen) onReturn();
      wasOpen = true;
    });
    source.addEventListener("error", () => {
      offline(true);
      if (source?.readyState === EventSource.CLOSED) {
        close();
        get("/me").catch(() => {}); // who is no longer logged in is sent to the login page
        setTimeout(open, 3000);
      }
    });
    for (const [name, act] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => act(JSON.parse(event.data), event.lastEventId));
    }
  }

  function close() {
    source?.close();
    source = null;
    if (document.hidden) offline(false);
  }

  function reopen() {
    close();
    open();
  }

  // A computer that slept, or changed its network, may hold a connection that is dead without knowing it.
  let lookedAt = Date.now();
  setInterval(() => {
    if (Date.now() - lookedAt > ASLEEP_AFTER_MS) reopen();
    lookedAt = Date.now();
  }, LOOK_EVERY_MS);
  addEventListener("online", reopen);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  open();
  return () => {
    ended = true;
    close();
  };
}

let warning = null;

/** Show that the connection is lost, unless it returns within a moment. */
function offline(yes) {
  if (!yes) {
    clearTimeout(warning);
    warning = null;
    $("#offline")?.remove();
  } else {
    warning ??= setTimeout(() => {
      const text = "The connection to the server is lost; reconnecting. The page may not be up to date.";
      $("header.bar").after(h("div", { id: "offline", class: "offline", role: "status" }, text));
    }, 2500);
  }
}
