import Glibc
import TestSupport
import Testing

@Suite(.enabled("needs root and a mount namespace") { try await Need.mounts.isMet() })
struct FullDiskTests {
  /// What cannot even be refused for want of room waits. It ended each run, and a worker that stays, whatever else
  /// there was to do.
  @Test func aJobThatCannotBeClaimedEndsNobody() async throws {
    let disk = try await SmallDisk(megabytes: 4)
    let spool = try TemporarySpool(in: disk.path)
    #expect(symlink("/etc/passwd", spool.path("new/aaa")) == 0)
    #expect(throws: TestSupportError.self) { try disk.fill(megabytes: 8) }
    try await spoolrun("--once", spool.root).exits(75, saying: "aaa")
    #expect(spool.places(of: "aaa") == ["new/aaa"])
    disk.empty()
    try await spool.once(exits: 1)
    #expect(spool.places(of: "aaa") == ["failed/aaa"])
  }
}
