/// TLS before `ScriptedServer`s that passes bytes on, so that scripts stay plain. What it adds is the end: with or
/// without close_notify, which tells a whole close-delimited body from a cut one.
package final class TLSFront: Sendable {
  private let terminator: TLSTerminator
  /// One for each server.
  package var ports: [UInt16] { terminator.ports }

  /// Listens when it returns. `announcesEnd`: whether the end of the server's stream becomes a close_notify.
  /// `lifetime`, in seconds, ends a front whose owner was killed.
  package init(
    to servers: [ScriptedServer], authority: CertificateAuthority, announcesEnd: Bool, lifetime: Int = 300
  ) async throws {
    terminator = try await TLSTerminator(
      to: servers, authority: authority, mode: announcesEnd ? "announce" : "cut", lifetime: lifetime, serve: program)
  }

  package convenience init(to server: ScriptedServer, authority: CertificateAuthority, announcesEnd: Bool) async throws
  {
    try await self.init(to: [server], authority: authority, announcesEnd: announcesEnd)
  }

  /// `https://127.0.0.1:PORT` of the first server, and `path`.
  package func url(_ path: String) -> String {
    "https://127.0.0.1:\(ports[0])\(path)"
  }
}

private let program = """
  # One thread has both directions: OpenSSL's connections bear no two at a time.
  def serve(plain, backend):
      try:
          with socket.create_connection(("127.0.0.1", int(backend))) as server:
              with context.wrap_socket(plain, server_side=True) as client:
                  pass_on(client, server)
      except OSError:
          pass

  def pass_on(client, server):
      poll = select.poll()
      poll.register(client, select.POLLIN)
      poll.register(server, select.POLLIN)
      while True:
          ready = [client.fileno()] if client.pending() else [descriptor for descriptor, _ in poll.poll()]
          if client.fileno() in ready:
              if data := client.recv(65536):
                  server.sendall(data)
              else:
                  poll.unregister(client)
                  server.shutdown(socket.SHUT_WR)
          if server.fileno() in ready:
              if data := server.recv(65536):
                  client.sendall(data)
              else:
                  break
      if mode == "announce":
          # Waits for the client's close_notify, but not for one that has forgotten it.
          client.settimeout(5)
          client.unwrap()
  """
