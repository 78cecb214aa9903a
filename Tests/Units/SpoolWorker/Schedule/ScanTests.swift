import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// Backlogs that are longer than what is looked ahead at.
@Suite struct ScanTests {
  private func open(_ files: TemporarySpool) throws -> Spool {
    try Spool(files.root, owner: WorkerID(host: "h", process: 1, tag: 1), boot: "b")
  }

  private func fill(_ files: TemporarySpool, _ directory: String, _ names: some Sequence<String>) throws {
    for name in names { try writeFile(files.path("\(directory)/\(name)"), []) }
  }

  @Test func piecesFromAllInTurnClaimsFirst() throws {
    let files = try TemporarySpool()
    try fill(files, "new", (0..<500).map { "n\($0)" })
    try fill(files, "partial", (0..<100).map { "p\($0)" })
    try fill(files, "cur", (0..<10).map { "c\($0):h.1.a" } + [".ignored"])
    let spool = try open(files)
    var scan = Scan()
    #expect(scan.isSettled)
    scan.request()
    #expect(!scan.isSettled && scan.canBegin)
    #expect(try scan.begin(spool) == [.cur, .partial, .new])
    let first = try scan.next(100)
    #expect(first.prefix(10).allSatisfy { $0.directory == .cur })
    #expect(first.count == 100 && first.count { $0.directory == .new } == 45)
    var rest: [(directory: Directory, name: FileName)] = []
    while scan.isUnderWay {
      let piece = try scan.next(100)
      #expect(piece.count == 100 || !scan.isUnderWay)
      rest += piece
    }
    #expect(scan.isSettled)
    #expect(Set((first + rest).map(\.name)).count == 610 && first.count + rest.count == 610)
  }

  /// What comes after a pass began may have been missed: a pass that was requested meanwhile begins anew.
  @Test func aPassUnderWayEndsFirst() throws {
    let files = try TemporarySpool()
    try fill(files, "new", (0..<50).map { "n\($0)" })
    let spool = try open(files)
    var scan = Scan()
    scan.request()
    _ = try scan.begin(spool)
    _ = try scan.next(10)
    scan.request()
    let begun = try scan.begin(spool)
    #expect(!begun.contains(.new), "or a long pass would never end")
    while scan.isUnderWay { _ = try scan.next(100) }
    #expect(!scan.isSettled && scan.canBegin)
    #expect(try scan.begin(spool) == [.new])
    #expect(try scan.next(100).count == 50)
    #expect(scan.isSettled)
  }
}
