// Requests to the REST API. Errors are thrown as ApiError with a message for the user.

const BASE = "/api/v1";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function csrf() {
  return document.querySelector('meta[name="csrf"]')?.content || "none";
}

/** The response to a request; users who are no longer logged in are sent to the login page. */
export async function request(method, path, body, { headers = {}, signal } = {}) {
  let answer;
  try {
    answer = await fetch(BASE + path, {
      method,
      signal,
      credentials: "same-origin",
      headers: {
        Accept: "application/json",
        ...(method === "GET" ? {} : { "X-Luthier-CSRF": csrf() }),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server cannot be reached. Your input is kept; try again in a moment.");
  }
  if (answer.status === 401 && !location.pathname.startsWith("/login")) {
    dispatchEvent(new Event("luthier-logged-out")); // forms keep what was typed
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search + location.hash)}`);
  }
  if (!answer.ok && answer.status !== 304) throw new ApiError(answer.status, await problem(answer));
  return answer;
}

async function problem(answer) {
  try {
    return (await answer.json()).error ?? answer.statusText;
  } catch {
    return `The server answered ${answer.status} ${answer.statusText}.`;
  }
}

async function json(method, path, body, options) {
  const answer = await request(method, path, body, options);
  const text = await answer.text();
  return text === "" ? null : JSON.parse(text);
}

export const get = (path, options) => json("GET", path, undefined, options);
export const post = (path, body, options) => json("POST", path, body ?? {}, options);
export const put = (path, body) => json("PUT", path, body);
export const patch = (path, body) => json("PATCH", path, body);
export const remove = (path) => json("DELETE", path);

/** A random key: repeated requests with the same key launch only one experiment. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
