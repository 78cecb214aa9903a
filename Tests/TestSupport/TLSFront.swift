import Glibc

/// TLS before a `ScriptedServer`: Python's `ssl` (OpenSSL) ends the encryption and passes bytes on, so that scripts stay
/// plain. What it adds is the end: with or without close_notify, which tells a whole close-delimited body from a cut one.
package final class TLSFront: Sendable {
  package let port: UInt16
  private let command: RunningCommand
  private let directory: TemporaryDirectory

  /// Listens when it returns. `announcesEnd`: whether the end of the backend's stream becomes a close_notify.
  package init(to backend: ScriptedServer, authority: CertificateAuthority, announcesEnd: Bool) async throws {
    directory = try TemporaryDirectory()
    let portFile = "\(directory.path)/port"
    command = try RunningCommand(
      [
        "/usr/bin/timeout", "300", "/usr/bin/python3", "-c", program, portFile, authority.certificate, authority.key,
        "\(backend.port)", announcesEnd ? "announce" : "cut",
      ], timeout: .seconds(310))
    try await waitUntil("the TLS front writes its port") { fileStatus(portFile) != nil }
    let text = String(decoding: try readFile(portFile), as: UTF8.self)
    guard let number = UInt16(text) else { throw TestSupportError("no port: \(text)") }
    port = number
  }

  deinit {
    command.send(signal: SIGTERM)
  }

  /// `https://127.0.0.1:PORT` and `path`.
  package func url(_ path: String) -> String {
    "https://127.0.0.1:\(port)\(path)"
  }
}

private let program = """
  import os, socket, ssl, sys, threading
  port_file, certificate, key, backend, end = sys.argv[1:]
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.load_cert_chain(certificate, key)

  def upstream(client, server):
      try:
          while data := client.recv(65536):
              server.sendall(data)
      except OSError:
          pass
      try:
          server.shutdown(socket.SHUT_WR)
      except OSError:
          pass

  def serve(plain):
      server = socket.create_connection(("127.0.0.1", int(backend)))
      try:
          client = context.wrap_socket(plain, server_side=True)
      except OSError:
          return
      threading.Thread(target=upstream, args=(client, server), daemon=True).start()
      try:
          while data := server.recv(65536):
              client.sendall(data)
          if end == "announce":
              client.unwrap()
      except OSError:
          pass
      try:
          client.shutdown(socket.SHUT_RDWR)
      except OSError:
          pass

  listener = socket.create_server(("127.0.0.1", 0))
  with open(port_file + ".new", "w") as file:
      file.write(str(listener.getsockname()[1]))
  os.rename(port_file + ".new", port_file)
  while True:
      threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
  """
