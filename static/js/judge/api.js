// Calls to the judging API. Every outcome is one of a few kinds, so that the callers need not know HTTP:
// ok | offline | signed_out | busy (try again later) | refused (do not try again).

export class ApiError extends Error {
  constructor(kind, message = "", { status = 0, code = "", after = 0 } = {}) {
    super(message || kind);
    this.kind = kind;
    this.status = status;
    this.code = code;
    this.after = after;
  }
}

const TIMEOUT_MS = 20_000;

async function body(reply) {
  try {
    return await reply.json();
  } catch {
    return {};
  }
}

function isCsrf(reply, data) {
  return reply.status === 403 && (data.code === "csrf" || /csrf/i.test(data.detail || ""));
}

function failure(reply, data) {
  const message = data.message || data.detail || (data.errors || []).join(" ");
  const facts = { status: reply.status, code: data.code || "" };
  if (reply.status === 401 || data.code === "signed_out" || data.code === "not_authenticated") {
    return new ApiError("signed_out", message, facts);
  }
  if (reply.status === 408 || reply.status === 429 || reply.status >= 500) {
    const after = Number(reply.headers.get("Retry-After")) * 1000 || 0;
    return new ApiError("busy", message, { ...facts, after });
  }
  return new ApiError("refused", message, facts);
}

export class Api {
  constructor({ base, csrfUrl, loginUrl, shortcutsUrl, user, csrf }) {
    Object.assign(this, { base, csrfUrl, loginUrl, shortcutsUrl, user: String(user), csrf });
    this.skew = 0; // What the server's clock is ahead of this machine's, in ms.
  }

  get(path) {
    return this.call(this.base + path, { method: "GET" });
  }

  post(path, data) {
    return this.call(this.base + path, { method: "POST", body: JSON.stringify(data) });
  }

  /** One call; a rotated CSRF token is fetched anew and the call made once more. */
  async call(url, options, again = true) {
    const reply = await this.fetch(url, options);
    this.compareClocks(reply.headers.get("Date"));
    if (reply.redirected && /\/login\//.test(reply.url)) throw new ApiError("signed_out");
    if (reply.ok) return body(reply);
    const data = await body(reply);
    if (isCsrf(reply, data) && again) {
      await this.renew();
      return this.call(url, options, false);
    }
    throw failure(reply, data);
  }

  /** The header tells whole seconds: only a clock that is clearly off is corrected, and then once. */
  compareClocks(date) {
    const skew = Date.parse(date) + 500 - Date.now();
    if (Number.isFinite(skew) && Math.abs(skew - this.skew) > 3000) this.skew = skew;
  }

  async fetch(url, options) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), TIMEOUT_MS);
    try {
      return await fetch(url, {
        ...options,
        credentials: "same-origin",
        signal: options.keepalive ? undefined : controller.signal,
        headers: {
          Accept: "application/json",
          "Content-Type": "application/json",
          "X-CSRFToken": this.csrf,
          ...options.headers,
        },
      });
    } catch {
      throw new ApiError("offline");
    } finally {
      clearTimeout(timer);
    }
  }

  /** Fetch the current token; tells whether the same person is still signed in. */
  async renew() {
    const reply = await this.fetch(this.csrfUrl, { method: "GET" });
    const data = await body(reply);
    if (!reply.ok) throw failure(reply, data);
    if (data.user === null || data.user === undefined) throw new ApiError("signed_out");
    if (String(data.user) !== this.user)
      throw new ApiError("signed_out", "", { code: "other_user" });
    this.csrf = data.csrf;
  }

  /** Sign in without leaving the page; resolves to the errors in words, none when it worked. */
  async signIn(username, password) {
    let reply = await this.fetch(this.csrfUrl, { method: "GET" });
    this.csrf = (await body(reply)).csrf;
    reply = await this.fetch(this.loginUrl, {
      method: "POST",
      body: new URLSearchParams({ username, password }),
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
    });
    const data = await body(reply);
    if (reply.status === 429) return { errors: [], code: "locked" };
    if (!reply.ok) return { errors: data.errors || [], code: "wrong" };
    const same = String(data.user) === this.user;
    // Somebody else's session must not send this person's answers: without a token it cannot.
    this.csrf = same ? data.csrf : "";
    return { errors: [], code: same ? "" : "other_user" };
  }

  /** A last word while the page goes away: nobody waits for the answer. */
  farewell(path, data) {
    const options = { method: "POST", body: JSON.stringify(data), keepalive: true };
    this.fetch(this.base + path, options).catch(() => {});
  }
}
