import Glibc

/// An FTP server on 127.0.0.1 with one file, `/d/f` (RFC 959, RFC 2428 and RFC 3659, as far as libcurl asks for them).
/// Python's, one thread a connection.
package final class FTPServer: Sendable {
  package let port: UInt16
  private let command: RunningCommand
  private let directory: TemporaryDirectory

  /// Listens when it returns.
  /// - Parameters:
  ///   - command: one that is always refused, such as `REST`, perhaps with the reply behind it; empty for none.
  ///   - sending: the data connection is closed after so many bytes, as if that were all; nil for all.
  ///   - junk: comes behind those bytes. Then only the first transfer is cut.
  ///   - isSilent: it does not say that all is sent, but for the first time.
  package init(
    file: [UInt8], refusing command: String = "", sending count: Int? = nil, junk: [UInt8] = [], isSilent: Bool = false
  ) async throws {
    directory = try TemporaryDirectory()
    try writeFile("\(directory.path)/file", file)
    try writeFile("\(directory.path)/junk", junk)
    self.command = try RunningCommand(
      [
        "/usr/bin/timeout", "300", "/usr/bin/python3", "-c", program, directory.path, command, "\(count ?? file.count)",
        isSilent ? "" : "says all",
      ],
      timeout: .seconds(310))
    let (running, portFile) = (self.command, "\(directory.path)/port")
    try await waitUntil("the FTP server writes its port") { running.isFinished || fileStatus(portFile) != nil }
    guard !running.isFinished else { throw TestSupportError("no FTP server: \(try await running.result())") }
    let text = String(decoding: try readFile(portFile), as: UTF8.self)
    guard let port = UInt16(text) else { throw TestSupportError("no port: \(text)") }
    self.port = port
  }

  deinit {
    command.send(signal: SIGTERM)
  }

  package var url: String { "ftp://user:word@127.0.0.1:\(port)/d/f" }

  /// What clients sent, line by line.
  package var commands: [String] {
    get throws {
      String(decoding: try readFile("\(directory.path)/commands"), as: UTF8.self).split(separator: "\n").map(
        String.init)
    }
  }
}

private let program = """
  import os, socket, sys, threading

  directory, count = sys.argv[1], int(sys.argv[3])
  refused, _, refusal = sys.argv[2].partition(" ")
  file = open(directory + "/file", "rb").read()
  junk = open(directory + "/junk", "rb").read()
  hasSaid = False
  commands = open(directory + "/commands", "a", buffering=1)
  replies = {"USER": "331 password", "PASS": "230 in", "PWD": '257 "/"', "CWD": "250 there", "TYPE": "200 binary",
             "SIZE": f"213 {len(file)}", "REST": "350 from there", "QUIT": "221 bye"}
  refusals = {"PASS": "530 refused", "RETR": "550 refused"}

  def serve(client):
      global count, junk, hasSaid
      def say(text):
          client.sendall(text.encode() + b"\\r\\n")
      offset, data = 0, None
      say("220 ready")
      for line in client.makefile("rb"):
          text = line.decode("latin1").strip()
          commands.write(text + "\\n")
          name, _, argument = text.partition(" ")
          if name == refused:
              say(refusal or refusals.get(name, "550 refused"))
          elif name == "EPSV":
              data = socket.create_server(("127.0.0.1", 0))
              say(f"229 there (|||{data.getsockname()[1]}|)")
          elif name == "QUIT" and not sys.argv[4]:
              pass
          elif name == "RETR":
              say("150 here it comes")
              with data.accept()[0] as connection:
                  connection.sendall(file[offset:][:count] + junk)
              if junk:
                  count, junk = len(file), b""
              offset = 0
              if sys.argv[4] or not hasSaid:
                  say("226 sent")
              hasSaid = True
          else:
              if name == "REST":
                  offset = int(argument)
              say(replies.get(name, "502 unknown"))

  listener = socket.create_server(("127.0.0.1", 0))
  with open(directory + "/port.new", "w") as port:
      port.write(str(listener.getsockname()[1]))
  os.rename(directory + "/port.new", directory + "/port")
  while True:
      threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
  """
