import Glibc
import TestSupport

/// A spool, a server that has whatever is asked for, and an environment in which `spoolrun` is found.
final class Trigger: Sendable {
  let spool: TemporarySpool
  let server: ScriptedServer
  private let directory: TemporaryDirectory

  init() throws {
    spool = try TemporarySpool()
    server = try ScriptedServer { request, reply in
      if request.target.hasPrefix("/gone") { return try reply.respond("404 Not Found", body: []) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: Array(request.target.utf8))
    }
    directory = try TemporaryDirectory()
    guard symlink(try productPath("spoolrun"), "\(directory.path)/spoolrun") == 0 else {
      throw TestSupportError("symlink", directory.path, errno: errno)
    }
  }

  /// Where `spoolrun` is.
  var tools: String { directory.path }
  var environment: [String: String] {
    testEnvironment.merging(["PATH": "\(tools):\(testEnvironment["PATH"] ?? "")"]) { $1 }
  }

  func isDone(_ name: String) -> Bool { fileStatus(spool.path("done/\(name)")) != nil }

  /// A file of the repository's `contrib/`.
  static func contrib(_ name: String) -> String { "\(SourceTree.root)/contrib/\(name)" }
}
