import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// What `keep: N` removes, and what it leaves.
@Suite struct KeptVersionsTests {
  private static let time = "2026-01-02T03:04:05Z"

  private func job(_ number: Int) -> String { "pod-000000000000000\(number)" }

  /// A subscription that keeps the newest of the files 1, 2 and 3, of which 1 is the newest.
  /// - Parameter existing: the file that was there before its job.
  /// - Parameter damaged: a file of the spool that cannot be read.
  private func subscription(existing: Int? = nil, damaged: String? = nil) throws -> Fixture {
    let fixture = try Fixture(hook: Probe { $0.kind == .read && $0.path == damaged ? .fail(.ioError) : nil })
    _ = mkdir(fixture.files.path("standing"), 0o700)
    let keys = (1...3).map { job($0).dropFirst(4) }.joined(separator: " ")
    try fixture.write(
      "standing/pod",
      "url: http://h/l\nevery: 1h\nkeep: 1\nchecked: \(Self.time) entries=3 new=3\nseen: \(keys)\n")
    for number in 1...3 {
      let end = number == existing ? " existing=yes" : ""
      try fixture.write("files/\(number)", "A")
      try fixture.write(
        "done/\(job(number))",
        """
        url: http://h/\(number)
        verified: \(Self.time) size=1 crc32=d3d99e8b part=7\(end)
        done: \(Self.time) attempts=1 output=\(number)

        """)
    }
    return fixture
  }

  /// - Returns: the outputs that are told of.
  private func trim(_ fixture: Fixture) throws -> [String] {
    let versions = try KeptVersions(fixture.spool, of: jobName(job(1)), output: { _ in nil })
    return try #require(versions).trim { false }.map { "\($0.receipt.output)\($0.reason ?? "")" }
  }

  @Test func `the newest stays`() throws {
    let fixture = try subscription()
    #expect(try trim(fixture) == ["3", "2"])
    #expect(fixture.names("files") == ["1"] && fixture.names("done") == [job(1)])
  }

  /// The subscription has never fetched it.
  @Test func `a file that was there before its job stays, and only its receipt goes`() throws {
    let fixture = try subscription(existing: 2)
    #expect(try trim(fixture) == ["3"])
    #expect(fixture.names("files") == ["1", "2"] && fixture.names("done") == [job(1)])
  }

  /// Its own one, and one of another job.
  @Test(arguments: [("pod-0000000000000002", ["3"]), ("other", ["3", "2"])])
  func `a damaged receipt keeps its own file, and no other`(name: String, removed: [String]) throws {
    let fixture = try subscription(damaged: "done/\(name)")
    if name == "other" { try fixture.write("done/other", "url: http://h/x\ndone: \(Self.time) attempts=1 output=x\n") }
    #expect(try trim(fixture) == removed)
    #expect(fixture.names("files") == ["1", "2", "3"].filter { !removed.contains($0) })
    #expect(fixture.names("done").contains(name))
  }

  @Test func `a job that cannot be read may want any of the files`() throws {
    let fixture = try subscription(damaged: "new/x")
    try fixture.write("new/x", "http://h/x\n")
    #expect(throws: SpoolError.self) { try trim(fixture) }
    #expect(fixture.names("files") == ["1", "2", "3"] && fixture.names("done").count == 3)
  }
}
