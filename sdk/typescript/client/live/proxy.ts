/** A TCP proxy between client and server that can hold back what the server says, and cut the connections. */
import { createConnection, createServer, type Server, type Socket } from "node:net";

export class Proxy {
  connections = 0;
  private isHolding = false;
  private readonly sockets = new Set<Socket>();
  private heldBack: (() => void) | undefined;

  private constructor(
    private readonly server: Server,
    readonly address: string,
  ) {}

  static async before(target: string): Promise<Proxy> {
    const [host, port] = target.split(":") as [string, string];
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const proxy = new Proxy(server, `localhost:${(server.address() as { port: number }).port}`);
    server.on("connection", (client) => proxy.join(client, createConnection(Number(port), host)));
    return proxy;
  }

  /** From now on nothing that the server says arrives. Resolves when something was held back. */
  hold(): Promise<void> {
    this.isHolding = true;
    return new Promise((resolve) => (this.heldBack = resolve));
  }

  /** Cut every connection; new ones are let through. */
  cut(): void {
    this.isHolding = false;
    for (const socket of this.sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private join(client: Socket, server: Socket): void {
    this.connections++;
    client.on("data", (data) => server.write(data));
    server.on("data", (data) => {
      if (this.isHolding) this.heldBack?.();
      else client.write(data);
    });
    for (const [one, other] of [[client, server], [server, client]] as const) {
      this.sockets.add(one);
      one.on("error", () => undefined); // its close follows
      one.on("close", () => {
        this.sockets.delete(one);
        other.destroy();
      });
    }
  }
}
