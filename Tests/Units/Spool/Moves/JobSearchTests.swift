import Glibc
import Synchronization
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
    let spool = try Fixture.open(files, hook: hook)
    #expect(try JobSearch(spool).place(of: jobName("a"))?.display == "done/a")
    #expect(claims.current == 2 && parked.current >= 2)
  }

  /// - Parameters:
  ///   - moves: where the job goes right before a directory is opened, or a file looked at, for the first time.
  ///   - others: the places of other jobs, which stay there.
  private func search(
    _ text: String, at place: String, _ moves: [String: String], others: [String] = []
  ) throws -> JobSearch {
    let files = try TemporarySpool()
    for name in ["standing", "done/archive", "done/archive/2026-11"] {
      try #require(mkdir(files.path(name), 0o700) == 0)
    }
    for path in [place] + others { try writeFile(files.path(path), Array(text.utf8)) }
    let now = Mutex(place)
    let opened = Mutex<Set<String>>([])
    let hook = Probe { call in
      guard call.kind == (call.path.contains("/") ? .stat : .open), let target = moves[call.path],
        opened.withLock({ $0.insert(call.path).inserted })
      else { return nil }
      now.withLock { place in
        _ = rename(files.path(place), files.path(target))
        place = target
      }
      return nil
    }
    return JobSearch(try Fixture.open(files, hook: hook))
  }

  @Test func `an order that is checked during the look is found`() throws {
    let order = "url: https://host/a\nevery: 1h\n"
    let search = try search(order, at: "standing/a", ["standing": "cur/a:alpha.1.00000002", "cur": "standing/a"])
    #expect(try search.standingOrder(of: "https://host/a")?.display == "standing/a")
  }

  @Test func `a job that begins its next attempt during the look is found`() throws {
    let search = try search("https://host/a\n", at: "partial/a", ["partial": "cur/a:alpha.1.00000002"])
    #expect(try search.firstJob { _ in true }?.place.display == "cur/a:alpha.1.00000002")
  }

  /// - Parameter target: where the job goes right before it is looked for in the directory.
  @Test(arguments: [("partial", "cur/a:alpha.1.00000002"), ("done", "done/archive/2026-11/a"), ("done", "new/a")])
  func `the whole name of a job is not the beginning of another's`(directory: String, target: String) throws {
    let search = try search(
      "https://host/a\n", at: "\(directory)/a", ["\(directory)/a": target], others: ["failed/a~2"])
    let meant = try search.meant(by: FileName("a"), in: [.new, .urgent, .cur, .partial, .hold, .failed])
    #expect(meant.names == [FileName("a")] && !meant.isUnclear)
  }
}
