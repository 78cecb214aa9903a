import Glibc
import TestSupport
import Testing

/// A user whose other programs have taken all that inotify(7) gives one.
@Suite(.enabled("needs user namespaces") { try await InotifyLimit.isPossible() })
struct InotifyLimitTests {
  @Test(arguments: ["max_inotify_instances=0", "max_inotify_watches=0", "max_inotify_watches=2"])
  func `the worker says so once, and looks around instead`(limit: String) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let worker = try startSpoolrun(["--rescan", "1s", spool.root], prefix: InotifyLimit.prefix(limit))
    for name in ["a", "b"] {
      try spool.drop(name, "\(server.url("/\(name)"))\n")
      try await waitUntil("\(name) is done") { spool.places(of: name) == ["done/\(name)"] }
    }
    let result = try await worker.stop().exits(0)
    #expect(result.errors.split(separator: "inotify-limit").count == 2, "\(result)")
  }
}

private enum InotifyLimit {
  static func prefix(_ limit: String) -> [String] {
    [
      "/usr/bin/unshare", "--user", "--map-root-user", "/bin/sh", "-euc",
      "echo \(limit.split(separator: "=")[1]) >/proc/sys/user/\(limit.prefix { $0 != "=" }); exec \"$@\"", "sh",
    ]
  }

  static func isPossible() async throws -> Bool {
    try await run(prefix("max_inotify_instances=0") + ["/bin/true"]).status == .exited(0)
  }
}
