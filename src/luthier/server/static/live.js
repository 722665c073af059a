// Server-sent events. A stream rests while nobody looks at the page, so that many open tabs do not use up the few
// connections a browser allows to one host.

import { $, h } from "./dom.js";

/** Follow the events at `address()`; `handlers` are by name of event. `onReturn` is called after an interruption. */
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

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  open();
  return () => {
    ended = true;
    close();
  };
}

let warning = null;

/** Say that the connection is lost, unless it is back in a moment. */
function offline(yes) {
  if (!yes) {
    clearTimeout(warning);
    warning = null;
    $("#offline")?.remove();
  } else {
    warning ??= setTimeout(() => {
      const words = "The connection to the server is lost; trying again. What is shown may be old.";
      $("header.bar").after(h("div", { id: "offline", class: "offline", role: "status" }, words));
    }, 2500);
  }
}
