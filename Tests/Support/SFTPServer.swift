import Glibc

/// sshd(8) on 127.0.0.1 with one file. Its first session sends other bytes from one place on, and is cut.
package final class SFTPServer: Sendable {
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
  ///   - count: the connection ends after so many bytes of its answers.
  package init(file: [UInt8], first broken: [UInt8], cutAfter count: Int) async throws {
    directory = try TemporaryDirectory()
    (home, port) = ("\(directory.path)/home", try freePort())
    try writeFile("\(directory.path)/whole", file)
    try writeFile("\(directory.path)/broken", broken)
    try writeFile("\(directory.path)/session", Array(session.utf8))
    try writeFile("\(directory.path)/settings", Array(settings(directory.path, port, cutAfter: count).utf8))
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

private func settings(_ directory: String, _ port: UInt16, cutAfter count: Int) -> String {
  """
  ListenAddress 127.0.0.1:\(port)
  HostKey \(directory)/host
  AuthorizedKeysFile \(directory)/home/.ssh/id_rsa.pub
  PubkeyAcceptedAlgorithms +ssh-rsa
  PermitRootLogin yes
  StrictModes no
  UseDNS no
  PidFile none
  Subsystem sftp exec /usr/bin/python3 \(directory)/session \(directory) \(count)

  """
}

/// Runs Debian's SFTP server. The first session passes on only so many bytes, and then kills the process that has the
/// connection.
private let session = """
  import os, signal, subprocess, sys

  directory, count = sys.argv[1], int(sys.argv[2])
  server = ["/usr/lib/openssh/sftp-server", "-e", "-l", "DEBUG3"]
  try:
      os.mkdir(directory + "/first")
  except FileExistsError:
      if os.path.exists(directory + "/whole"):
          os.replace(directory + "/whole", directory + "/f")
      os.dup2(os.open(directory + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
      os.execv(server[0], server)
  os.replace(directory + "/broken", directory + "/f")
  answers = subprocess.Popen(server, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
  while count > 0 and (some := os.read(answers.fileno(), min(count, 65536))):
      count -= len(some)
      while some:
          some = some[os.write(1, some):]
  os.kill(os.getppid(), signal.SIGKILL)
  """
