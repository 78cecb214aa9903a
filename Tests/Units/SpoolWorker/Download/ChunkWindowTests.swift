import SystemPackage
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// What several connections bring, put in order.
@Suite struct ChunkWindowTests {
  /// A disk that takes no data beyond `limit`.
  private final class SmallFile: CallHook {
    let limit: Int64

    init(limit: Int64) { self.limit = limit }

    func before(_ call: Call) -> Fault? {
      guard call.kind == .write, call.path.hasSuffix(".part"), let end = call.range?.upperBound, end > limit else {
        return nil
      }
      return .fail(.noSpace)
    }

    func after(_ call: Call) {}
  }

  /// The other connections still run when a write fails, and what they bring next belongs behind what is missing.
  @Test func nothingIsJoinedAfterAFailedWrite() throws {
    let files = try TemporarySpool()
    let spool = try Fixture.open(files, hook: SmallFile(limit: 300_000))
    try files.drop("a", "http://127.0.0.1:9/a\n")
    let claim = try spool.outcome("a").claim()
    let part = try #require(try PartFile.open(claim.job, in: spool))
    let state = PartData(
      claim: claim, request: claim.text.request, part: part, version: nil, space: DiskSpace(spool, kept: 0),
      blocks: BlockPool())
    defer { state.leaveSpace() }
    var plan = ChunkPlan(0..<1_000_000, connections: 2, largest: 300_000, ChunkPlan.Estimate(flow: 1e9, wait: 0))
    let requests = plan.assign(now: 0)
    #expect(requests.map(\.range) == [0..<300_000, 300_000..<600_000])
    let window = ChunkWindow(state, plan: plan)
    func take(_ count: Int, on connection: Int) throws {
      _ = try [UInt8](repeating: 7, count: count).withUnsafeBytes { try window.take($0, on: connection, host: "h") }
    }
    try take(250_000, on: 1)
    // All of the first chunk fits, and with it what came early of the second one does not.
    #expect(throws: SpoolError.self) { try take(300_000, on: 0) }
    #expect(throws: SpoolError.self) { try take(10, on: 1) }
    try state.finishPending()
    #expect(try readFile(files.path("partial/a.part")).count == 262_144)
  }
}
