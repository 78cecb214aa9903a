import TestSupport
import Testing

@testable import Spool

/// Whether two workers of one host name are on one host.
@Suite struct WorkerSeatTests {
  private static let here = ("boot-1", "pid:[1]", UInt64(7))

  private func owner(_ place: (boot: String, namespace: String, device: UInt64), isLocal: Bool) -> WorkerID {
    WorkerID(host: "worker-0", process: 1, tag: 9, namespace: place.namespace)
      .seated(boot: place.boot, device: place.device, isLocal: isLocal)
  }

  private func name(_ owner: WorkerID) throws -> WorkerName { try #require(WorkerName(owner.text.utf8)) }

  @Test(arguments: [true, false])
  func itIsReadBack(isLocal: Bool) throws {
    let owner = owner(Self.here, isLocal: isLocal)
    #expect(try name(owner).seat == owner.seat && owner.seat != nil)
    #expect(owner.text.hasPrefix("worker-0.1.00000009\(isLocal ? "l" : "s")"))
  }

  @Test(arguments: ["", "00000009", "00000009x12345678", "00000009l1234567", "00000009l123456789"])
  func others(tag: String) { #expect(WorkerSeat(ofTag: tag) == nil) }

  @Test func eachPartCounts() {
    let seats = [Self.here, ("boot-2", "pid:[1]", 7), ("boot-1", "pid:[2]", 7), ("boot-1", "pid:[1]", 8)]
      .map { owner($0, isLocal: false).seat }
    #expect(Set(seats).count == 4)
    #expect(owner(("unknown", "pid:[1]", 7), isLocal: false).seat == nil)
  }

  /// What a worker of this host name may conclude from a free lock, and from a process id.
  @Test func sharing() throws {
    let files = try TemporarySpool()
    func spool(_ kind: FileSystemKind?, boot: String = "boot-1") throws -> Spool {
      try Spool(
        files.root, owner: WorkerID(host: "worker-0", process: 1, tag: 9, namespace: "pid:[1]"), boot: boot, kind: kind)
    }
    let (local, shared) = (try spool(FileSystemKind(name: "ext4", sharing: .local)), try spool(.fuse))
    let old = try #require(WorkerName("worker-0.1.00000009".utf8))
    let before = (local: try spool(local.kind, boot: "boot-0"), shared: try spool(.fuse, boot: "boot-0"))
    let elsewhere = try #require(WorkerName(shared.owner.text.replacing("worker-0", with: "worker-1").utf8))
    let rows: [(here: Spool, there: WorkerName, locks: Bool, processes: Bool?)] = [
      (local, try name(local.owner), true, true), (shared, try name(shared.owner), true, true),
      (local, try name(shared.owner), false, nil), (shared, try name(local.owner), false, nil),
      // As version 0.1 named it.
      (local, old, true, true), (shared, old, false, false),
      (local, try name(before.local.owner), true, false), (shared, try name(before.shared.owner), false, nil),
      // Named with --host-id.
      (shared, elsewhere, false, true),
    ]
    for (index, row) in rows.enumerated() {
      let (locks, processes) = (row.locks, row.processes)
      #expect(Leases(row.here).sharesLocks(with: row.there) == locks, "row \(index)")
      if let processes { #expect(Leases(row.here).sharesProcesses(with: row.there) == processes, "row \(index)") }
    }
  }
}
