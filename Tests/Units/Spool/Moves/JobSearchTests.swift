import Glibc
import TestSupport
import Testing

@testable import Spool

/// Finding a job by its name while it moves.
@Suite struct JobSearchTests {
  /// It is in `cur/` during the first look, goes to `partial/` and back around the second, and to `done/` within the
  /// third.
  @Test func aJobThatMovesWithEachLookIsFound() throws {
    let files = try TemporarySpool()
    let claim = "cur/a:alpha.1.00000002"
    try writeFile(files.path(claim), Array("https://host/a\n".utf8))
    let (claims, parked) = (Counter(), Counter())
    let hook = Probe { call in
      if call.kind == .open, call.path == "cur" {
        _ = rename(files.path(claim), files.path(claims.next() == 1 ? "partial/a" : "done/a"))
      } else if call.kind == .stat, call.path == "partial/a", parked.next() == 2 {
        _ = rename(files.path("partial/a"), files.path(claim))
      }
      return nil
    }
    let spool = try Spool(
      files.root, owner: WorkerID(host: "alpha", process: 42, tag: 1), boot: "b", system: System(hook: hook))
    #expect(try JobSearch(spool).place(of: jobName("a"))?.display == "done/a")
    #expect(claims.current == 2 && parked.current >= 2)
  }
}
