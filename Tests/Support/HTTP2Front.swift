/// HTTP/2 over TLS before `ScriptedServer`s; python3-hpack decodes the heads of requests. Each request goes to the
/// server on a connection of its own, as text: `GET /path HTTP/2`, and the number of its stream in a field
/// `http2-stream`. What the script answers with are frames (`HTTP2Stream`), which go to the client one by one as they
/// are. The front's own are an empty SETTINGS at the beginning, and the acknowledgements of SETTINGS and PING. When the
/// script ends its connection, so does the front: `Reply.finish` becomes a close_notify, `Reply.reset` an end without.
///
/// A client that negotiates HTTP/1.1 is passed on as it is, as `TLSFront` does, where `speaksHTTP1`; else its
/// connection is closed after the handshake.
package final class HTTP2Front: Sendable {
  private let terminator: TLSTerminator
  /// One for each server.
  package var ports: [UInt16] { terminator.ports }

  /// Listens when it returns. `lifetime`, in seconds, ends a front whose owner was killed.
  package init(
    to servers: [ScriptedServer], authority: CertificateAuthority, speaksHTTP1: Bool = true, lifetime: Int = 300
  ) async throws {
    terminator = try await TLSTerminator(
      to: servers, authority: authority, mode: speaksHTTP1 ? "h2,http/1.1" : "h2", lifetime: lifetime, serve: program)
  }

  /// `https://127.0.0.1:PORT` of the first server, and `path`.
  package func url(_ path: String) -> String {
    "https://127.0.0.1:\(ports[0])\(path)"
  }
}

private let program = """
  from hpack import Decoder
  context.set_alpn_protocols(mode.split(","))
  DATA, HEADERS, RST_STREAM, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
  ACK, END_HEADERS, PADDED, PRIORITY = 0x1, 0x4, 0x8, 0x20
  PREFACE = b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"

  def frame(kind, flags, stream, payload=b""):
      return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

  # The whole frames that the bytes begin with, as (type, flags, stream, payload, all bytes); takes them away.
  def frames(data):
      while len(data) >= 9 and len(data) >= (end := 9 + int.from_bytes(data[:3], "big")):
          one = bytes(data[:end])
          del data[:end]
          yield one[3], one[4], int.from_bytes(one[5:9], "big") & 0x7FFFFFFF, one[9:], one

  def serve(plain, backend):
      try:
          with context.wrap_socket(plain, server_side=True) as client:
              if client.selected_alpn_protocol() == "h2":
                  Connection(client, backend).run()
              elif "http/1.1" in mode:
                  Passage(client, backend).run()
      except OSError:
          pass

  # One thread has all directions: OpenSSL's connections bear no two at a time.
  class Front:
      def __init__(self, client, backend):
          self.client, self.backend = client, backend
          self.servers = {}
          self.poll = select.poll()
          self.poll.register(client, select.POLLIN)

      def connect(self, stream):
          server = socket.create_connection(("127.0.0.1", int(self.backend)))
          self.servers[server.fileno()] = server, stream, bytearray()
          self.poll.register(server, select.POLLIN)
          return server

      def disconnect(self, descriptor):
          self.poll.unregister(descriptor)
          self.servers.pop(descriptor)[0].close()

      def run(self):
          try:
              while True:
                  isPending = self.client.pending()
                  ready = [self.client.fileno()] if isPending else [number for number, _ in self.poll.poll()]
                  for descriptor in ready:
                      if descriptor == self.client.fileno():
                          if not (data := self.client.recv(65536)):
                              return
                          self.asked(data)
                      elif descriptor in self.servers:
                          server, _, rest = self.servers[descriptor]
                          if not (data := server.recv(65536)):
                              self.client.sendall(rest)
                              # Waits for the client's close_notify, but not for one that has forgotten it.
                              self.client.settimeout(5)
                              self.client.unwrap()
                              return
                          rest += data
                          self.answered(rest)
          finally:
              for server, _, _ in self.servers.values():
                  server.close()

  class Passage(Front):
      def asked(self, data):
          if not self.servers:
              self.connect(0)
          next(iter(self.servers.values()))[0].sendall(data)

      def answered(self, data):
          self.client.sendall(data)
          data.clear()

  class Connection(Front):
      def __init__(self, client, backend):
          super().__init__(client, backend)
          self.input = bytearray()
          self.decoder = Decoder()
          self.block = b""
          self.is_begun = False
          client.sendall(frame(SETTINGS, 0, 0))

      def asked(self, data):
          self.input += data
          if not self.is_begun and len(self.input) >= len(PREFACE):
              del self.input[:len(PREFACE)]
              self.is_begun = True
          for kind, flags, stream, payload, _ in frames(self.input) if self.is_begun else ():
              if kind in (SETTINGS, PING) and not flags & ACK:
                  self.client.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
              elif kind == RST_STREAM:
                  for descriptor in [one for one, (_, its, _) in self.servers.items() if its == stream]:
                      self.disconnect(descriptor)
              elif kind in (HEADERS, CONTINUATION):
                  if kind == HEADERS and flags & PADDED:
                      payload = payload[1:len(payload) - payload[0]]
                  if kind == HEADERS and flags & PRIORITY:
                      payload = payload[5:]
                  self.block += payload
                  if flags & END_HEADERS:
                      self.request(stream, self.decoder.decode(self.block))
                      self.block = b""

      def request(self, stream, fields):
          pseudo = {name: value for name, value in fields if name.startswith(":")}
          lines = [f"{pseudo[':method']} {pseudo[':path']} HTTP/2"]
          lines += [f"host: {pseudo[':authority']}", f"http2-stream: {stream}"]
          lines += [f"{name}: {value}" for name, value in fields if not name.startswith(":")]
          self.connect(stream).sendall("".join(f"{line}\\r\\n" for line in lines + [""]).encode())

      def answered(self, data):
          for *_, one in frames(data):
              self.client.sendall(one)
  """
