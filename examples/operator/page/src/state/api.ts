/** The platform's JSON API over HTTP, of the same origin. */

import { RequestError } from "../model/connection.js";

export async function api<Answer>(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new RequestError("NO_ANSWER", "");
  }
  const text = await response.text();
  const value = parse(text);
  if (!response.ok) {
    const { reason = `HTTP_${response.status}`, message = "", metadata = {} } = value as {
      reason?: string;
      message?: string;
      metadata?: Record<string, string>;
    };
    throw new RequestError(reason, message, metadata);
  }
  return value as Answer;
}

export function query(values: Record<string, string | undefined>): string {
  const set = Object.entries(values).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return set.length ? `?${new URLSearchParams(set)}` : "";
}

function parse(text: string): unknown {
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    return {};
  }
}
