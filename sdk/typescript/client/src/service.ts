/**
 * Services from their descriptors: each method typed, over @grpc/grpc-js. A unary call is repeated by the policy; a
 * request that has a `request_id` gets one if it names none, and every repeat carries the same.
 */
import {
  clone,
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  isMessage,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { randomUUID } from "node:crypto";
import { type Client, type ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import { errorOfCall, type RgsError } from "./errors.js";
import { DEFAULT_POLICY, pauseBefore, type RetryPolicy, sleep } from "./retry.js";

/** A request that changes something, before it is sent for the first time. */
export interface Intent {
  /** As `/rgs.v1.PlayService/StartRound`. An id belongs to one method. */
  readonly method: string;
  readonly requestId: string;
  /** The request, encoded: what a repeat after a restart has to send. */
  readonly request: Uint8Array;
}

export interface Settings {
  /**
   * Called with each request that changes something, before its first attempt. Store it here: if it throws, nothing is
   * sent. It is not called again for the client's own repeats, but for a stored request that you send again: accept an id
   * that you have.
   */
  readonly beforeSend?: (intent: Intent) => void | Promise<void>;
  /** Called before each repeat, for logs and counters. */
  readonly onRepeat?: (method: string, requestId: string, error: RgsError) => void;
  readonly policy?: Partial<RetryPolicy>;
}

export interface CallOptions {
  readonly policy?: Partial<RetryPolicy>;
}

export type ServiceClient<Service extends DescService> = {
  [Name in keyof Service["method"]]: Service["method"][Name] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : Service["method"][Name] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>) => AsyncIterable<MessageShape<O>>
      : Service["method"][Name] extends DescMethodClientStreaming<infer I, infer O>
        ? (requests: AsyncIterable<MessageInitShape<I>> | Iterable<MessageInitShape<I>>) => Promise<MessageShape<O>>
        : Service["method"][Name] extends DescMethodBiDiStreaming<infer I, infer O>
          ? () => ClientDuplexStream<MessageShape<I>, MessageShape<O>>
          : never;
};

/**
 * A new request id: a UUID in lowercase that begins with the time (version 7), so that the server's store writes less.
 * Make one for each intent, and keep it for all repeats of it.
 */
export function newRequestId(): string {
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/** The path of a method, as gRPC and `Intent.method` name it. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** The methods of a service. `next` gives the channel for a call. */
export function serviceOf<Service extends DescService>(
  service: Service,
  next: () => Client,
  settings: Settings,
): ServiceClient<Service> {
  const methods: Record<string, unknown> = {};
  for (const method of service.methods) {
    methods[method.localName] = methodOf(method, next, settings);
  }
  return methods as ServiceClient<Service>;
}

function methodOf(method: DescMethod, next: () => Client, settings: Settings): unknown {
  switch (method.methodKind) {
    case "unary":
      return (request: MessageInitShape<DescMessage>, options?: CallOptions) =>
        callUnary(method, copyOf(method.input, request), next, settings, options);
    case "server_streaming":
      return (request: MessageInitShape<DescMessage>) => read(method, create(method.input, request), next());
    case "client_streaming":
      return (requests: AsyncIterable<MessageInitShape<DescMessage>>) => send(method, requests, next());
    case "bidi_streaming":
      return () => openDuplex(method, next());
  }
}

/** A message of its own: an id that is put into it must not reach the caller's object, which may be used again. */
export function copyOf<Desc extends DescMessage>(schema: Desc, request: MessageInitShape<Desc>): MessageShape<Desc> {
  return isMessage(request, schema) ? clone(schema, request) : create(schema, request);
}

/** Give a request its id, if it takes one and has none, and let the caller store it. The id, or "". */
export async function announce(method: string, schema: DescMessage, message: object, settings: Settings) {
  const field = schema.fields.find(({ name }) => name === "request_id");
  if (field === undefined) return "";
  const request = message as { requestId: string };
  request.requestId ||= newRequestId();
  const intent = { method, requestId: request.requestId, request: toBinary(schema, message as never) };
  await settings.beforeSend?.(intent);
  return request.requestId;
}

async function callUnary(
  method: DescMethod,
  message: MessageShape<DescMessage>,
  next: () => Client,
  settings: Settings,
  options: CallOptions = {},
): Promise<MessageShape<DescMessage>> {
  const policy = { ...DEFAULT_POLICY, ...settings.policy, ...options.policy };
  const requestId = await announce(pathOf(method), method.input, message, settings);
  for (let attempt = 1; ; attempt++) {
    try {
      return await callOnce(method, message, next(), policy.timeoutMs);
    } catch (failure) {
      const error = errorOfCall(failure, requestId);
      const pause = pauseBefore(attempt + 1, error, policy);
      if (pause === undefined) throw error;
      settings.onRepeat?.(pathOf(method), requestId, error);
      await sleep(pause);
    }
  }
}

function callOnce(
  method: DescMethod,
  message: MessageShape<DescMessage>,
  client: Client,
  timeoutMs: number,
): Promise<MessageShape<DescMessage>> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      pathOf(method),
      encoder(method.input),
      decoder(method.output),
      message,
      new Metadata(),
      { deadline: Date.now() + timeoutMs },
      (error, answer) => {
        if (error !== null) reject(error);
        else resolve(answer as MessageShape<DescMessage>);
      },
    );
  });
}

async function* read(method: DescMethod, message: MessageShape<DescMessage>, client: Client) {
  const call = client.makeServerStreamRequest(
    pathOf(method),
    encoder(method.input),
    decoder(method.output),
    message,
    new Metadata(),
    {},
  );
  try {
    yield* call as AsyncIterable<MessageShape<DescMessage>>;
  } catch (failure) {
    throw errorOfCall(failure);
  } finally {
    call.cancel();
  }
}

async function send(method: DescMethod, requests: AsyncIterable<MessageInitShape<DescMessage>>, client: Client) {
  let answered: (answer: MessageShape<DescMessage>) => void;
  let failed: (error: unknown) => void;
  const answer = new Promise<MessageShape<DescMessage>>((resolve, reject) => {
    answered = resolve;
    failed = reject;
  });
  let ended = false;
  const call = client.makeClientStreamRequest(
    pathOf(method),
    encoder(method.input),
    decoder(method.output),
    new Metadata(),
    {},
    (error, message) => {
      ended = true;
      call.emit("drain"); // whoever waits to write must not wait for ever
      if (error !== null) failed(errorOfCall(error));
      else answered(message as MessageShape<DescMessage>);
    },
  );
  answer.catch(() => undefined); // awaited below, after the last write
  for await (const request of requests) {
    if (ended) break;
    if (!call.write(create(method.input, request))) await new Promise((resolve) => call.once("drain", resolve));
  }
  call.end();
  return answer;
}

/** A bidirectional stream as gRPC has it: an EventEmitter of messages. PlayStream and TableWatch build on it. */
export function openDuplex(method: DescMethod, client: Client) {
  return client.makeBidiStreamRequest(
    pathOf(method),
    encoder(method.input),
    decoder(method.output),
    new Metadata(),
    {},
  ) as ClientDuplexStream<MessageShape<DescMessage>, MessageShape<DescMessage>>;
}

function encoder(schema: DescMessage) {
  return (message: unknown): Buffer => Buffer.from(toBinary(schema, message as MessageShape<DescMessage>));
}

function decoder(schema: DescMessage) {
  return (bytes: Buffer): MessageShape<DescMessage> => fromBinary(schema, bytes);
}
