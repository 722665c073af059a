// The way to the server. Trouble comes as an ApiError with a line that a person understands.

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

/** The answer to a request; whoever is no longer logged in is sent to the door. */
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
    throw new ApiError(0, "The server cannot be reached. What you typed is still here; try again in a moment.");
  }
  if (answer.status === 401 && !location.pathname.startsWith("/login")) {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
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

/** A key that makes a repeated launch the same one. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
