import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Many jobs dropped in groups, of which one moves to `new/` while the next is written.
@Suite struct GroupDropTests {
  private static let groupSize = 4

  private func text(_ number: Int) -> [UInt8] { Array("url: http://h/x-\(number)\n".utf8) }

  private func name(_ number: Int) throws -> JobName { try #require(JobName(FileName("x-\(number)"))) }

  private func drop(_ count: Int, into spool: Spool) throws {
    let group = try GroupDrop(spool, groupSize: Self.groupSize)
    for number in 0..<count { try group.drop(text(number), as: name(number)) }
    try group.finish()
  }

  /// The jobs in `new/` are whole, and are the first of the list: an earlier one is never missing.
  private func expectFirst(_ range: ClosedRange<Int>, in files: TemporarySpool) throws {
    let dropped = Set(files.names("new"))
    #expect(range.contains(dropped.count), "\(dropped.count)")
    #expect(dropped == Set((0..<dropped.count).map { "x-\($0)" }))
    for number in 0..<dropped.count { #expect(try readFile(files.path("new/x-\(number)")) == text(number)) }
    #expect(files.names("tmp") == [])
  }

  @Test(arguments: [0, 1, 4, 5, 8, 11])
  func `all are dropped, whatever the size of the last group`(count: Int) throws {
    let fixture = try Fixture()
    try drop(count, into: fixture.spool)
    try expectFirst(count...count, in: fixture.files)
  }

  @Test(.enabled("syncfs(2) that reports errors") { FileSystem.isReliable })
  func `a job is durable before it is in new, and its name before the end`() throws {
    let calls = Mutex<[Call]>([])
    let fixture = try Fixture(
      hook: Probe { call in
        calls.withLock { $0.append(call) }
        return nil
      })
    try drop(11, into: fixture.spool)
    let all = calls.withLock { $0 }
    for number in 0..<11 {
      let write = try #require(all.firstIndex { $0.kind == .write && $0.path.hasPrefix("tmp/x-\(number):") })
      let move = try #require(all.firstIndex { $0.kind == .rename && $0.path.hasSuffix(" new/x-\(number)") })
      #expect(write < move && all[write..<move].contains { $0.kind == .syncfs }, "x-\(number)")
      #expect(all[move...].contains { $0.kind == .syncfs }, "x-\(number)")
    }
  }

  @Test(arguments: [
    (Call.Kind.create, 1, 0...0), (.create, 7, 0...4), (.write, 11, 0...8), (.syncfs, 1, 0...0), (.syncfs, 2, 4...4),
    (.syncfs, 3, 8...8), (.rename, 1, 0...0), (.rename, 3, 2...2), (.rename, 8, 7...7), (.rename, 11, 10...10),
  ])
  func `after an error nothing is left in tmp`(kind: Call.Kind, count: Int, dropped: ClosedRange<Int>) throws {
    let made = Counter()
    let fixture = try Fixture(hook: Probe { $0.kind == kind && made.next() == count ? .fail(.noSpace) : nil })
    #expect(throws: SpoolError.self) { try drop(11, into: fixture.spool) }
    try expectFirst(dropped, in: fixture.files)
  }
}
