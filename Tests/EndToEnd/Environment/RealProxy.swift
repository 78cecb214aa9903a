import Glibc
import TestSupport

/// A real proxy on 127.0.0.1 that serves only `us3r` with `pa55word`.
final class RealProxy: Sendable {
  enum Kind: String, Sendable {
    case squid, tinyproxy, dante

    var schemes: [String] { self == .dante ? ["socks5", "socks5h"] : ["http"] }

    /// Dante takes the users of the system, so it gets other ones in a mount namespace.
    func isThere() async throws -> Bool {
      switch self {
      case .squid: try await Need.areMet(.squid, .tls)
      case .tinyproxy: try await Need.areMet(.program("tinyproxy"), .tls)
      case .dante: try await Need.areMet(.program("danted"), .tls, .mounts)
      }
    }
  }

  static let login = "us3r:pa55word"
  let port: UInt16
  private let directory: TemporaryDirectory
  private let command: RunningCommand

  /// Listens when it returns.
  init(_ kind: Kind) async throws {
    let directory = try TemporaryDirectory()
    let port = try freePort()
    // Squid and Dante give up root.
    guard chmod(directory.path, 0o777) == 0 else { throw TestSupportError("chmod", directory.path, errno: errno) }
    let arguments =
      switch kind {
      case .squid: try await Self.squid(directory.path, port)
      case .tinyproxy: try Self.tinyproxy(directory.path, port)
      case .dante: try await Self.dante(directory.path, port)
      }
    let command = try RunningCommand(["/usr/bin/timeout", "300"] + arguments, timeout: .seconds(310))
    try await waitUntil("\(kind) listens") { command.isFinished || isListening(port) }
    guard !command.isFinished else { throw TestSupportError("no \(kind): \(try await command.result())") }
    (self.directory, self.port, self.command) = (directory, port, command)
  }

  deinit { command.send(signal: SIGTERM) }

  /// What it has logged so far.
  var log: String {
    String(decoding: (try? readFile("\(directory.path)/log")) ?? [], as: UTF8.self)
  }

  // MARK: how each is started

  private static func write(_ path: String, _ text: String) throws {
    try writeFile(path, text)
    guard chmod(path, 0o644) == 0 else { throw TestSupportError("chmod", path, errno: errno) }
  }

  private static func hash(_ form: String) async throws -> String {
    try await runTool(["/usr/bin/openssl", "passwd", form, "pa55word"]).output.filter { $0 != "\n" }
  }

  private static func squid(_ directory: String, _ port: UInt16) async throws -> [String] {
    try write("\(directory)/users", "us3r:\(try await hash("-apr1"))\n")
    try write(
      "\(directory)/conf",
      """
      http_port 127.0.0.1:\(port)
      pid_filename none
      cache_log \(directory)/cache.log
      access_log stdio:\(directory)/log
      coredump_dir \(directory)
      cache deny all
      \(geteuid() == 0 ? "cache_effective_user proxy" : "")
      shutdown_lifetime 0 seconds
      auth_param basic program /usr/lib/squid/basic_ncsa_auth \(directory)/users
      auth_param basic children 1
      acl known proxy_auth REQUIRED
      http_access allow known
      http_access deny all

      """)
    return ["/usr/sbin/squid", "-N", "-f", "\(directory)/conf"]
  }

  private static func tinyproxy(_ directory: String, _ port: UInt16) throws -> [String] {
    try write(
      "\(directory)/conf",
      """
      Port \(port)
      Listen 127.0.0.1
      Timeout 60
      MaxClients 20
      LogFile "\(directory)/log"
      BasicAuth us3r pa55word

      """)
    return ["/usr/bin/tinyproxy", "-d", "-c", "\(directory)/conf"]
  }

  private static func dante(_ directory: String, _ port: UInt16) async throws -> [String] {
    let users = ["root:x:0:0::/:/bin/sh", "nobody:x:65534:65534::/:/bin/false", "us3r:x:65533:65534::/:/bin/false"]
    try write("\(directory)/passwd", users.joined(separator: "\n") + "\n")
    try write("\(directory)/shadow", "root:*:1::::::\nnobody:*:1::::::\nus3r:\(try await hash("-6")):1::::::\n")
    try write(
      "\(directory)/conf",
      """
      logoutput: \(directory)/log
      internal: 127.0.0.1 port = \(port)
      external: 127.0.0.1
      clientmethod: none
      socksmethod: username
      user.privileged: root
      user.unprivileged: nobody
      client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
      socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 log: connect error }

      """)
    return [
      "/usr/bin/unshare", "--mount", "/bin/sh", "-euc",
      """
      for file in passwd shadow; do mount --bind \(directory)/$file /etc/$file; done
      exec danted -p \(directory)/pid -f \(directory)/conf
      """,
    ]
  }
}
