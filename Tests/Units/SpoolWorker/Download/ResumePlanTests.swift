import Testing

@testable import Spool
@testable import SpoolWorker

/// What the next request asks for.
@Suite struct ResumePlanTests {
  struct Row: Sendable {
    let length: UInt64
    let version: RemoteVersion?
    var mirror = 1
    var hasDigest = false
    let offset: UInt64
    var ifRange: String?
    var comparesSizeOnly = false
  }

  private static let strong = RemoteVersion(mirror: 1, size: 100, etag: "\"v1\"", modified: "date")
  private static let weak = RemoteVersion(mirror: 1, size: 100, etag: "W/\"v1\"", modified: "date")
  private static let dated = RemoteVersion(mirror: 1, size: 100, etag: nil, modified: "date")
  private static let bare = RemoteVersion(mirror: 1, size: nil, etag: nil, modified: nil)
  private static let ignored = RemoteVersion(mirror: 1, size: 100, etag: "\"v1\"", modified: nil, ignoresIfRange: true)

  @Test(arguments: [
    // Nothing to go on from.
    Row(length: 0, version: nil, offset: 0), Row(length: 0, version: strong, offset: 0),
    Row(length: 50, version: nil, offset: 0),
    Row(length: 50, version: nil, hasDigest: true, offset: 0),
    // A strong validator goes into If-Range.
    Row(length: 1, version: strong, offset: 1, ifRange: "\"v1\""),
    Row(length: 100, version: strong, offset: 100, ifRange: "\"v1\""),
    Row(length: 50, version: strong, hasDigest: true, offset: 50, ifRange: "\"v1\""),
    Row(length: 50, version: dated, offset: 50, ifRange: "date"),
    // Never a weak one, and never a date beside an ETag: then only a declared checksum lets it go on.
    Row(length: 50, version: weak, offset: 0),
    Row(length: 50, version: weak, hasDigest: true, offset: 50, comparesSizeOnly: true),
    Row(length: 50, version: bare, offset: 0),
    Row(length: 50, version: bare, hasDigest: true, offset: 50, comparesSizeOnly: true),
    // A server that answers 200 to each If-Range is asked without, and compared.
    Row(length: 50, version: ignored, offset: 50), Row(length: 50, version: ignored, hasDigest: true, offset: 50),
    // Longer than the whole is no prefix.
    Row(length: 101, version: strong, offset: 0), Row(length: 101, version: strong, hasDigest: true, offset: 0),
    // Another mirror's validator is compared with, unless a checksum will tell.
    Row(length: 50, version: strong, mirror: 2, offset: 50, ifRange: "\"v1\""),
    Row(length: 50, version: strong, mirror: 2, hasDigest: true, offset: 50, comparesSizeOnly: true),
    Row(length: 50, version: bare, mirror: 2, offset: 0),
  ])
  func decide(_ row: Row) {
    let plan = ResumePlan.decide(
      length: row.length, version: row.version, mirror: row.mirror, hasDigest: row.hasDigest)
    #expect(plan == ResumePlan(offset: row.offset, ifRange: row.ifRange, comparesSizeOnly: row.comparesSizeOnly))
  }
}
