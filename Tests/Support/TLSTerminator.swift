import Glibc

/// A Python program that ends TLS before `ScriptedServer`s (Python's `ssl` is OpenSSL), with a port for each of them,
/// until its owner goes.
///
/// What it does with a connection is `serve`, a Python function of the client's socket before the handshake and of the
/// server's port. It may use `context`, an `ssl.SSLContext`, and `mode`, a string.
final class TLSTerminator: Sendable {
  /// One for each server.
  let ports: [UInt16]
  private let command: RunningCommand
  private let directory: TemporaryDirectory

  /// Listens when it returns. `lifetime`, in seconds, ends a program whose owner was killed.
  init(
    to servers: [ScriptedServer], authority: CertificateAuthority, mode: String, lifetime: Int, serve: String
  ) async throws {
    directory = try TemporaryDirectory()
    let portFile = "\(directory.path)/ports"
    command = try RunningCommand(
      [
        "/usr/bin/timeout", "\(lifetime)", "/usr/bin/python3", "-c", "\(prologue)\n\(serve)\n\(epilogue)", portFile,
        authority.certificate, authority.key, mode,
      ] + servers.map { "\($0.port)" }, timeout: .seconds(lifetime + 10))
    let command = command
    try await waitUntil("the TLS front writes its ports") { command.isFinished || fileStatus(portFile) != nil }
    guard !command.isFinished else {
      throw TestSupportError("no TLS front (python3 is needed): \(try await command.result())")
    }
    let text = String(decoding: try readFile(portFile), as: UTF8.self)
    ports = text.split(separator: " ").compactMap { UInt16($0) }
    guard ports.count == servers.count else { throw TestSupportError("no ports: \(text)") }
  }

  deinit {
    command.send(signal: SIGTERM)
  }
}

private let prologue = """
  import os, select, socket, ssl, sys, threading
  port_file, certificate, key, mode, *backends = sys.argv[1:]
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.load_cert_chain(certificate, key)
  """

private let epilogue = """
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
