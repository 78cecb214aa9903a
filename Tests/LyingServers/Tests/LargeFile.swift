import TestSupport

@testable import LyingServer

/// A file that a job fetches over several connections, a piece with each request.
enum LargeFile {
  /// 300 kB.
  static let bytes = large(payload, count: 30)
  /// What the URL held before.
  static let before = large(previous, count: 30)
  /// A line of a job.
  static let checksum = "crc32: \(hex8(independentCRC32(bytes)))\n"
  /// Requests of 16 kB.
  static let options = ["--once", "--chunk-size", "16k"]

  static func fetch(_ spool: TemporarySpool, _ options: String...) async throws -> CommandResult {
    try await spoolrun(Self.options + options + [spool.root])
  }

  /// Whether these bytes are the payload `data`.
  static func isPublished(_ bytes: [UInt8], _ spool: TemporarySpool) throws -> Bool {
    try spool.payload("data") == bytes
  }
}
