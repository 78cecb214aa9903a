import Glibc
import TestSupport
import Testing

/// `spoolrun doctor`: what a file system lets workers see.
@Suite struct DoctorTests {
  private func hiddenNames(_ spool: TemporarySpool) -> [String] {
    TestSupport.names(in: spool.path("tmp"), isHiddenToo: true)
  }

  @Test func aLocalFileSystemIsFit() async throws {
    let spool = try TemporarySpool()
    let result = try await spoolrun("doctor", spool.root)
    #expect(result.status == .exited(0) && result.errors == "")
    #expect(result.output.hasSuffix("\nfit\n"), "\(result)")
    #expect(hiddenNames(spool) == [])
    let log = try await spoolrun("--once", "-v", spool.root).errors
    #expect(log.contains(" file-system type=") && log.contains(" fitness=fit\n"), "\(log)")
  }

  /// Two spools on one local file system are two spools: the trial looks for the file itself.
  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func onFUSEWithAPeer() async throws {
    let spool = try TemporarySpool()
    let (one, other) = (try await BindMount(spool.root), try await BindMount(spool.root))
    let result = try await spoolrun("doctor", one.path).exits(0)
    #expect(result.output.contains("\nfit with limits:\n"), "\(result)")
    #expect(result.output.contains("10 s") && result.output.contains("--rescan"), "\(result)")
    let log = try await spoolrun("--once", "-v", one.path).errors
    #expect(log.contains(#" fitness="fit with limits" limits=""#), "\(log)")

    let pair = try await spoolrun("doctor", one.path, "--peer", other.path).exits(0)
    #expect(pair.output.contains("20 files renamed by both: 0 twice, 0 lost"), "\(pair)")
    #expect(pair.output.contains("do not exclude the other"), "\(pair)")
    // FUSE hides a file that is removed while it is open, and removes it after the last close, a moment later.
    try await waitUntil("nothing is left in tmp/") { hiddenNames(spool) == [] }
  }

  /// It does not wait for a file that will never be seen.
  @Test func twoSpools() async throws {
    let (one, other) = (try TemporarySpool(), try TemporarySpool())
    for directory in TestSupport.names(in: other.root) {
      try setModificationTime(other.path(directory), secondsFromNow: -100)
    }
    let result = try await spoolrun("doctor", one.root, "--peer", other.root).exits(78, printing: "two spools")
    #expect(!result.output.contains("a new file"), "nothing was tried: \(result)")
    #expect(hiddenNames(one) == [] && hiddenNames(other) == [])
  }

  @Test func noSpool() async throws {
    let directory = try TemporaryDirectory()
    try await spoolrun("doctor", directory.path).exits(66)
  }
}
