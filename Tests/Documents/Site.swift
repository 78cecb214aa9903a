import Glibc
import TestSupport

/// Where README's examples and the recipes run: a directory of their own, the program on the path, a server in place of
/// the hosts named there, and this machine in place of the remote one that `scp` copies to.
final class Site: Sendable {
  let directory: TemporaryDirectory
  let server: ScriptedServer
  let environment: [String: String]
  /// Until then, the server sends half of `/cut.tar`, and fails.
  let isServerMended: Gate

  var spool: String { "\(directory.path)/spool" }

  /// 1 MiB with the CRC-32 that README names.
  static let payload: [UInt8] = (0..<1 << 20).map { UInt8(truncatingIfNeeded: ($0 * $0) / 7 + $0) }
  /// Its SHA-256.
  static let digest = "718f795461bcee0907a1403e70ffec9ba9cb792f2e0aca490c8a5f817235794c"

  /// - Parameter usesSpoolVariable: whether commands find the spool by SPOOLRUN_SPOOL.
  init(usesSpoolVariable: Bool = false) throws {
    directory = try TemporaryDirectory()
    let isMended = try Gate()
    isServerMended = isMended
    server = try ScriptedServer { request, reply in
      switch request.target.prefix(while: { $0 != "?" }) {
      case "/gone.iso": try reply.respond("404 Not Found", body: [])
      case "/busy.iso": try reply.respond("500 Internal Server Error", body: [])
      case "/pub/SHA256SUMS": try reply.respond("200 OK", body: Array("\(Site.digest)  new.tar\n".utf8))
      case "/feed.xml":
        let items = (1...5).map { "<item><guid>\($0)</guid><enclosure url=\"/\($0).mp3\" type=\"audio/mpeg\"/></item>" }
        try reply.respond("200 OK", body: Array("<rss><channel>\(items.joined())</channel></rss>".utf8))
      case "/cut.tar": try Site.cut(request, reply, isMended)
      default: try reply.respond("200 OK", ["ETag: \"1\""], body: Site.payload)
      }
    }
    let tools = "\(directory.path)/bin"
    mkdir(tools, 0o700)
    symlink(try productPath("spoolrun"), "\(tools)/spoolrun")
    // The real one, with the host's name cut off: it then copies on this machine.
    try writeFile("\(tools)/scp", Array("#!/bin/sh\nexec /usr/bin/scp -q \"$1\" \"${2#*:}\"\n".utf8))
    chmod("\(tools)/scp", 0o700)
    // Slurm runs a script on another host.
    try writeFile("\(tools)/sbatch", Array("#!/bin/sh\nexec bash \"$@\"\n".utf8))
    chmod("\(tools)/sbatch", 0o700)
    // Whoever runs the tests may have downloads of their own.
    var own = [
      "PATH": "\(tools):\(testEnvironment["PATH"] ?? "")", "XDG_STATE_HOME": "\(directory.path)/state",
      "RCLONE_CONFIG": "\(directory.path)/rclone.conf",
    ]
    if usesSpoolVariable { own["SPOOLRUN_SPOOL"] = "\(directory.path)/spool" }
    environment = testEnvironment.merging(own) { $1 }
  }

  /// The first half, or what a range asks for.
  private static func cut(_ request: ServerRequest, _ reply: Reply, _ isMended: Gate) throws(PeerGone) {
    let size = payload.count
    guard let start = request.rangeStart else {
      try reply.head("200 OK", ["ETag: \"1\"", "Content-Length: \(size)"])
      try reply.send(payload[..<(size / 2)])
      return try reply.finish()
    }
    guard isMended.isOpen else { return try reply.respond("500 Internal Server Error", body: []) }
    try reply.respond(
      "206 Partial Content", ["ETag: \"1\"", "Content-Range: bytes \(start)-\(size - 1)/\(size)"],
      body: payload[start...])
  }

  /// `text` with our server, spool and program instead of the examples'.
  func localized(_ text: String) -> String {
    text.replacing(/https:\/\/([a-z-]+\.example|www\.rfc-editor\.org)\//, with: server.url("/"))
      .replacing("/srv/spool", with: spool).replacing(" contrib/", with: " " + SourceTree.contrib("")).replacing(
        /\/usr(\/local)?\/bin\/spoolrun/, with: "spoolrun")
  }

  /// A step with what it is said to print, which names our server's host then.
  func localized(_ step: ConsoleStep) -> ConsoleStep {
    ConsoleStep(command: step.command, output: step.output.map { $0.replacing(/[a-z-]+\.example/, with: "127.0.0.1") })
  }

  func run(_ argv: [String], in place: String? = nil) async throws -> CommandResult {
    try await TestSupport.run(argv.map(localized), environment: environment, directory: place ?? directory.path)
  }

  /// The names in one of the spool's directories.
  func files(_ state: String) -> Set<String> { Set(names(in: "\(spool)/\(state)")) }
}
