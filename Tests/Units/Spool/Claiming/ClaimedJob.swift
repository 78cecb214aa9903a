import TestSupport

@testable import Spool

/// Tests that begin with one claimed job, `a`.
protocol ClaimedJob {}

extension ClaimedJob {
  /// Its text before the claim.
  var url: String { "https://host/a\n" }
  /// Its path.
  var own: String { "cur/a:alpha.42.00000001" }

  func claimed(hook: (any CallHook)? = nil) throws -> (Fixture, Claim) { try claimed(Fixture(hook: hook)) }

  func claimed(watching hook: (TemporarySpool) -> any CallHook) throws -> (Fixture, Claim) {
    try claimed(Fixture(watching: hook))
  }

  private func claimed(_ fixture: Fixture) throws -> (Fixture, Claim) {
    try fixture.files.drop("a", url)
    return (fixture, try fixture.claim("a"))
  }

  /// A line for its journal.
  func mark(_ offset: UInt64) -> JournalLine { .checkpoint(Mark(offset: offset, checksum: Checksum())) }
}
