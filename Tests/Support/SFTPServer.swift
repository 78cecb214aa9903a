import Glibc

/// sshd(8) on 127.0.0.1 with one file. Its first session sends other bytes, and does not end well.
package final class SFTPServer: Sendable {
  /// How the first session ends.
  package enum End: Sendable {
    /// It is silent, after so many bytes of its answers, until ``SFTPServer/cut()``.
    case silent(Int)
    /// It is silent from the moment on in which the client closes the file.
    case deaf

    fileprivate var words: String {
      switch self {
      case .silent(let count): "silent \(count)"
      case .deaf: "deaf 1000000000"
      }
    }
  }

  package let port: UInt16
  /// The home directory of a client, which has the keys.
  package let home: String
  private let directory: TemporaryDirectory
  private let command: RunningCommand
  private let user: String

  /// Listens when it returns.
  /// - Parameters:
  ///   - file: what every session but the first one sends.
  ///   - broken: what the first one sends.
  package init(file: [UInt8], first broken: [UInt8], _ end: End) async throws {
    directory = try TemporaryDirectory()
    (home, port) = ("\(directory.path)/home", try freePort())
    try writeFile("\(directory.path)/whole", file)
    try writeFile("\(directory.path)/broken", broken)
    try writeFile("\(directory.path)/session", Array(session.utf8))
    try writeFile("\(directory.path)/settings", Array(settings(directory.path, port, end).utf8))
    let made = try await runTool(
      ["/bin/sh", "-euc", "\(preparation)id -un", "sh", "\(port)"], directory: directory.path)
    user = String(made.output.filter { $0 != "\n" })
    // As root, sshd wants an empty directory in /run.
    let server = "exec /usr/sbin/sshd -D -e -f '\(directory.path)/settings'"
    let asRoot = ["unshare", "--mount", "sh", "-euc", "mount -t tmpfs none /run; mkdir /run/sshd; \(server)"]
    command = try RunningCommand(
      ["/usr/bin/timeout", "300"] + (geteuid() == 0 ? asRoot : ["sh", "-euc", server]), timeout: .seconds(310))
    let (running, port) = (self.command, self.port)
    try await waitUntil("sshd listens") { running.isFinished || isListening(port) }
    guard !running.isFinished else { throw TestSupportError("no sshd: \(try await running.result())") }
  }

  deinit { command.send(signal: SIGTERM) }

  /// Kills the process that has the connection of the first session.
  package func cut() throws { try writeFile("\(directory.path)/cut", []) }

  package var url: String { "sftp://\(user)@127.0.0.1:\(port)\(directory.path)/f" }

  /// The offsets that were asked for in the sessions behind the first one, in order.
  package var offsets: [UInt64] {
    get throws {
      // Its lines end in CR LF.
      let words = String(decoding: try readFile("\(directory.path)/log"), as: UTF8.self).split(separator: " ")
      return zip(words, words.dropFirst()).compactMap { $0 == "off" ? UInt64($1) : nil }
    }
  }
}

/// libssh2 up to 1.10 signs with RSA and SHA-1 only.
private let preparation = """
  umask 077
  mkdir -p home/.ssh
  ssh-keygen -q -t ed25519 -N '' -f host
  ssh-keygen -q -t rsa -m PEM -N '' -f home/.ssh/id_rsa
  echo "[127.0.0.1]:$1 $(cut -d' ' -f1,2 host.pub)" >home/.ssh/known_hosts

  """

private func settings(_ directory: String, _ port: UInt16, _ end: SFTPServer.End) -> String {
  """
  ListenAddress 127.0.0.1:\(port)
  HostKey \(directory)/host
  AuthorizedKeysFile \(directory)/home/.ssh/id_rsa.pub
  PubkeyAcceptedAlgorithms +ssh-rsa
  PermitRootLogin yes
  StrictModes no
  UseDNS no
  PidFile none
  Subsystem sftp exec /usr/bin/python3 \(directory)/session \(directory) \(end.words)

  """
}

/// Runs Debian's SFTP server. For the first session it passes on what both say.
private let session = """
  import os, signal, subprocess, sys, threading, time

  directory, end, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
  server = ["/usr/lib/openssh/sftp-server", "-e", "-l", "DEBUG3"]
  try:
      os.mkdir(directory + "/first")
  except FileExistsError:
      if os.path.exists(directory + "/whole"):
          os.replace(directory + "/whole", directory + "/f")
      os.dup2(os.open(directory + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
      os.execv(server[0], server)
  os.replace(directory + "/broken", directory + "/f")
  first = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

  def pass_requests():
      while len(length := sys.stdin.buffer.read(4)) == 4:
          request = sys.stdin.buffer.read(int.from_bytes(length, "big"))
          # SSH_FXP_CLOSE.
          if end == "deaf" and request[0] == 4:
              return
          first.stdin.write(length + request)
          first.stdin.flush()
      os._exit(0)

  threading.Thread(target=pass_requests, daemon=True).start()
  while count > 0 and (some := os.read(first.stdout.fileno(), min(count, 65536))):
      count -= len(some)
      while some:
          some = some[os.write(1, some):]
  while not os.path.exists(directory + "/cut"):
      time.sleep(0.01)
  os.kill(os.getppid(), signal.SIGKILL)
  """
