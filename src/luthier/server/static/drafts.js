// What was typed in a form, kept in this tab of the browser while its user logs in again. Secrets are never kept, and
// only the same user gets it back.

const KEY = "luthier-draft";
const user = document.documentElement.dataset.user;
const page = location.pathname + location.search;

/** Keep what was typed on this page; false if the browser has no room for it. */
export function keepDraft(typed) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ user, page, typed }));
    return true;
  } catch {
    return false;
  }
}

/** What the user had typed on this page before the session ended; null if nothing was kept. It is given once. */
export function takeDraft() {
  const kept = read();
  if (kept?.user !== user || kept?.page !== page) return null;
  forgetDraft();
  return kept.typed;
}

/** The page whose form was kept; null without one. */
export function draftPage() {
  return read()?.page ?? null;
}

/** Forget what was kept, unless this user may get it back. */
export function forgetOthersDraft() {
  if (user && read()?.user !== user) forgetDraft();
}

export function forgetDraft() {
  sessionStorage.removeItem(KEY);
}

function read() {
  return JSON.parse(sessionStorage.getItem(KEY) ?? "null");
}
