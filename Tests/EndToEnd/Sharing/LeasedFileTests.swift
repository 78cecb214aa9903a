import Glibc
import TestSupport
import Testing

/// A program with a write lease on its file keeps others from opening it (fcntl(2), F_SETLEASE).
@Suite struct LeasedFileTests {
  /// F_SETLEASE, which the module Glibc leaves out.
  private static let setLease: Int32 = 1024

  /// What a dropper does with a file of their own stops no command about another job.
  @Test func othersGoOn() async throws {
    let spool = try TemporarySpool()
    // The kernel tells of each open that waits for the lease by a signal that would end this process.
    signal(SIGIO, SIG_IGN)
    var leased: [Int32] = []
    defer { for file in leased { close(file) } }
    for path in ["new/m", "hold/h", "failed/m.failed", "failed/n"] {
      try spool.write(path, "http://localhost:1/\(path)\n")
      let file = open(spool.path(path), O_RDWR | O_CLOEXEC)
      try #require(file >= 0 && fcntl(file, Self.setLease, F_WRLCK) == 0)
      leased.append(file)
    }
    for name in ["a", "z"] { try spool.write("hold/\(name)", "http://localhost:1/\(name)\n") }

    // The kernel ends a lease 45 s after the first open that it has kept waiting.
    func leaseAnew() throws {
      for file in leased {
        _ = fcntl(file, Self.setLease, F_UNLCK)
        try #require(fcntl(file, Self.setLease, F_WRLCK) == 0)
      }
    }
    func succeeds(_ arguments: String...) async throws {
      try leaseAnew()
      let result = try await spoolrun(arguments)
      #expect(result.status == .exited(0) && result.duration < .seconds(40), "\(arguments): \(result)")
    }
    try await succeeds("report", "--output", spool.path("report.html"), spool.root)
    try await succeeds("status", "--metrics", spool.root)
    try await succeeds("status", spool.root)
    try await succeeds("status", "--spool", spool.root, "a")
    try await succeeds("add", "--new", "--spool", spool.root, "http://localhost:1/other")
    try await succeeds("subscribe", "--spool", spool.root, "http://localhost:1/feed")
    try await succeeds("url", "--spool", spool.root, "a", "http://localhost:1/mirror")
    try await succeeds("clean", spool.root)
    try leaseAnew()
    let told = try await spoolrun("status", "--spool", spool.root, "new/m")
    #expect(told.errors.contains("another program keeps it from being read"), "\(told)")
    try await succeeds("release", "--spool", spool.root, "a", "hold/h", "z")
    #expect(spool.names("hold") == [] && Set(spool.names("new")).isSuperset(of: ["a", "h", "m", "z"]))
  }
}
