import Glibc

/// An SMTP server on 127.0.0.1 that takes all mail (RFC 5321, as far as curl asks for it). Python's.
package final class MailServer: Sendable {
  package let port: UInt16
  private let command: RunningCommand
  private let directory: TemporaryDirectory

  /// Listens when it returns.
  package init() async throws {
    directory = try TemporaryDirectory()
    command = try RunningCommand(
      ["/usr/bin/timeout", "300", "/usr/bin/python3", "-c", program, directory.path], timeout: .seconds(310))
    let (running, portFile) = (command, "\(directory.path)/port")
    try await waitUntil("the mail server writes its port") { running.isFinished || fileStatus(portFile) != nil }
    guard !running.isFinished else { throw TestSupportError("no mail server: \(try await running.result())") }
    let text = String(decoding: try readFile(portFile), as: UTF8.self)
    guard let port = UInt16(text) else { throw TestSupportError("no port: \(text)") }
    self.port = port
  }

  deinit { command.send(signal: SIGTERM) }

  /// What clients sent, line by line.
  package var said: [String] {
    get throws {
      String(decoding: try readFile("\(directory.path)/said"), as: UTF8.self).split(separator: "\n").map(String.init)
    }
  }
}

private let program = """
  import os, socket, sys

  directory = sys.argv[1]
  said = open(directory + "/said", "a", buffering=1)
  server = socket.create_server(("127.0.0.1", 0))
  with open(directory + "/port.new", "w") as file:
      file.write(str(server.getsockname()[1]))
  os.rename(directory + "/port.new", directory + "/port")
  while True:
      client, _ = server.accept()
      client.sendall(b"220 ready\\r\\n")
      isData = False
      for line in client.makefile("rb"):
          assert line.endswith(b"\\r\\n"), line
          text = line.decode().rstrip("\\r\\n")
          said.write(text + "\\n")
          if isData and text != ".":
              continue
          isData = text == "DATA"
          client.sendall({"DATA": b"354 go on", "QUIT": b"221 bye"}.get(text, b"250 yes") + b"\\r\\n")
          if text == "QUIT":
              break
      client.close()
  """
