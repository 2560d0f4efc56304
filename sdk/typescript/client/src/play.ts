/** The Play stream: rounds over one bidirectional stream, at less cost than unary calls and with the same answers. */
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, type ClientDuplexStream, status as Code } from "@grpc/grpc-js";
import {
  type ActRequestSchema,
  type ActResponse,
  type GetRoundRequestSchema,
  type GetRoundResponse,
  type PlayRequest,
  PlayRequestSchema,
  type PlayResponse,
  PlayService,
  type RoundNotice,
  type SessionUpdate,
  type StartRoundRequestSchema,
  type StartRoundResponse,
} from "../build/rgs/v1/play_pb.js";
import { errorMadeHere, errorOf, type RgsError } from "./errors.js";
import { DEFAULT_POLICY } from "./retry.js";
import { announce, copyOf, openDuplex, pathOf, type Settings } from "./service.js";
import { RequestStream } from "./stream.js";

export interface PlayListener {
  /** A round of a session that this stream plays was paused, resumed or ended without the player. */
  readonly onNotice?: (notice: RoundNotice) => void;
  /** A session that this stream has played, after somebody else has changed it. It is whole. */
  readonly onUpdate?: (update: SessionUpdate) => void;
  /**
   * The stream has ended, and repeats did not help: the next request opens another. Or a session is not followed any
   * more, which `metadata.session_id` names.
   */
  readonly onError?: (error: RgsError) => void;
}

type Answer = Exclude<PlayResponse["response"], { case: undefined }>;

/** One stream, opened by the first request. It may play many sessions. */
export class PlayStream {
  private readonly stream: RequestStream<PlayRequest, PlayResponse>;

  constructor(
    next: () => Client,
    private readonly settings: Settings,
    listener: PlayListener = {},
  ) {
    const path = pathOf(PlayService.method.play);
    this.stream = new RequestStream(
      {
        open: () => openDuplex(PlayService.method.play, next()) as unknown as ClientDuplexStream<PlayRequest, PlayResponse>,
        greetings: () => [],
        take: ({ response }) => {
          switch (response.case) {
            case "notice":
              listener.onNotice?.(response.value);
              return true;
            case "update":
              listener.onUpdate?.(response.value);
              return true;
            default:
              return false;
          }
        },
        requestIdOf: ({ requestId }) => requestId,
        errorIn: ({ requestId, response }) =>
          response.case === "error" ? errorOf(response.value, requestId) : undefined,
        onError: (error) => listener.onError?.(error),
        onRepeat: (requestId, error) => settings.onRepeat?.(path, requestId, error),
      },
      { ...DEFAULT_POLICY, ...settings.policy },
    );
  }

  startRound(request: MessageInitShape<typeof StartRoundRequestSchema>): Promise<StartRoundResponse> {
    return this.ask("startRound", request) as Promise<StartRoundResponse>;
  }

  act(request: MessageInitShape<typeof ActRequestSchema>): Promise<ActResponse> {
    return this.ask("act", request) as Promise<ActResponse>;
  }

  getRound(request: MessageInitShape<typeof GetRoundRequestSchema>): Promise<GetRoundResponse> {
    return this.ask("getRound", request) as Promise<GetRoundResponse>;
  }

  close(): void {
    this.stream.close();
  }

  private async ask(name: "startRound" | "act" | "getRound", request: object): Promise<Answer["value"]> {
    const method = PlayService.method[name];
    const message = copyOf(method.input as DescMessage, request as Record<string, unknown>);
    const requestId = await announce(pathOf(method), method.input, message, this.settings);
    const wrapped = create(PlayRequestSchema, { request: { case: name, value: message } as PlayRequest["request"] });
    const { response } = await this.stream.ask(wrapped, requestId);
    if (response.case !== name) throw errorMadeHere(Code.DATA_LOSS, `the answer is of ${response.case}`, requestId);
    return response.value;
  }
}
