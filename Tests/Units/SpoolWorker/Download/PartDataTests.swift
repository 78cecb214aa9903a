import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

extension WorkerLoop {
  /// Runs `body` on a loop of its own.
  static func alone<Value: Sendable>(_ body: @escaping @WorkerLoop @Sendable () async throws -> Value) throws -> Value {
    let result: Result<Value, any Error> = $executor.withValue(LoopExecutor(LinuxSurroundings())) {
      run {
        do { return .success(try await body()) } catch { return .failure(error) }
      }
    }
    return try result.get()
  }
}

/// The data as it grows and is cut.
@Suite struct PartDataTests {
  private static let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

  /// After a requeue, or where nothing is trusted, the journal has marks of bytes that are gone. The digests of new
  /// bytes do not continue from these.
  @Test(arguments: [[], ["checkpoint: 2000000 crc32=00000001"]])
  func `marks of other bytes do not count`(more: [String]) throws {
    let lines = [
      "http://127.0.0.1:9/a", "started: 2026-11-21T03:00:00Z attempt=1 worker=alpha.1.2 boot=b1 mirror=1 url=u",
      "response: mirror=1 at=0 part=7 size=3000000", "checkpoint: 250 crc32=00C0FFEE",
    ]
    let text = (lines + more).map { $0 + "\n" }.joined()
    let mark = try WorkerLoop.alone { try await Self.cut(text, to: 300) }
    #expect(mark.offset == 300)
    #expect(mark.digests[.crc32] == Digest(.crc32, hex8(independentCRC32(Self.bytes[..<300]))))
  }

  /// The end of the data, after ``bytes`` came and were cut.
  @WorkerLoop private static func cut(_ job: String, to offset: UInt64) async throws -> Mark {
    let fixture = try Fixture()
    try fixture.drop(job, as: "a")
    let claim = try fixture.claim("a")
    let part = try PartFile.open(claim.job, in: fixture.spool)
    let data = PartData(
      claim: claim, request: claim.text.request, part: try #require(part), version: nil,
      space: DiskSpace(fixture.spool, kept: 0), blocks: BlockPool())
    defer { data.leaveSpace() }
    try data.begin(RemoteVersion(mirror: 1, size: 1000, etag: nil, modified: nil))
    try bytes.withUnsafeBytes { try data.append($0, host: "h") }
    try data.finishPending()
    try await data.cutBack(to: offset)
    return data.mark
  }
}
