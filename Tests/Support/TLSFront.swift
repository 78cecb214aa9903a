import Glibc

/// TLS before `ScriptedServer`s: Python's `ssl` (OpenSSL) ends the encryption and passes bytes on, so that scripts stay
/// plain. What it adds is the end: with or without close_notify, which tells a whole close-delimited body from a cut one.
package final class TLSFront: Sendable {
  /// One for each backend.
  package let ports: [UInt16]
  private let command: RunningCommand
  private let directory: TemporaryDirectory

  /// Listens when it returns. `announcesEnd`: whether the end of the backend's stream becomes a close_notify.
  /// `lifetime`, in seconds, ends a front whose owner was killed.
  package init(
    to backends: [ScriptedServer], authority: CertificateAuthority, announcesEnd: Bool, lifetime: Int = 300
  ) async throws {
    directory = try TemporaryDirectory()
    let portFile = "\(directory.path)/ports"
    command = try RunningCommand(
      [
        "/usr/bin/timeout", "\(lifetime)", "/usr/bin/python3", "-c", program, portFile, authority.certificate,
        authority.key, announcesEnd ? "announce" : "cut",
      ] + backends.map { "\($0.port)" }, timeout: .seconds(lifetime + 10))
    try await waitUntil("the TLS front writes its ports") { fileStatus(portFile) != nil }
    let text = String(decoding: try readFile(portFile), as: UTF8.self)
    ports = text.split(separator: " ").compactMap { UInt16($0) }
    guard ports.count == backends.count else { throw TestSupportError("no ports: \(text)") }
  }

  package convenience init(to backend: ScriptedServer, authority: CertificateAuthority, announcesEnd: Bool) async throws
  {
    try await self.init(to: [backend], authority: authority, announcesEnd: announcesEnd)
  }

  deinit {
    command.send(signal: SIGTERM)
  }

  /// `https://127.0.0.1:PORT` of the first backend, and `path`.
  package func url(_ path: String) -> String {
    "https://127.0.0.1:\(ports[0])\(path)"
  }
}

private let program = """
  import os, select, socket, ssl, sys, threading
  port_file, certificate, key, end, *backends = sys.argv[1:]
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.load_cert_chain(certificate, key)

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
      if end == "announce":
          # Waits for the client's close_notify, but not for one that has forgotten it.
          client.settimeout(5)
          client.unwrap()

  def listen(listener, backend):
      while True:
          threading.Thread(target=serve, args=(listener.accept()[0], backend), daemon=True).start()

  listeners = [socket.create_server(("127.0.0.1", 0)) for _ in backends]
  with open(port_file + ".new", "w") as file:
      file.write(" ".join(str(listener.getsockname()[1]) for listener in listeners))
  os.rename(port_file + ".new", port_file)
  for pair in zip(listeners, backends):
      threading.Thread(target=listen, args=pair).start()
  """
