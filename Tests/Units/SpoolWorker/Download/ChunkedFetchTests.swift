import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// How a fetch over several connections ends.
@Suite struct ChunkedFetchTests {
  /// A server that sends a byte more than it states. Something else ends the fetch just before that byte.
  private final class Liar: Fetcher {
    private let url: URLParts
    var beforeTheLie: () -> Void = {}
    let lastWait = 0.0

    init(_ url: URLParts) { self.url = url }

    func answer(from first: UInt64, to last: UInt64) -> Response {
      let fields = [(name: "etag", value: "\"v1\""), (name: "content-range", value: "bytes \(first)-\(last)/1000000")]
      return Response(ResponseHead(status: 206, fields: fields), from: url, now: 0)
    }

    func fetch(_ request: FetchRequest, into sink: any FetchSink) async -> FetchResult {
      let (first, last) = (request.rangeStart ?? 0, request.rangeEnd ?? 0)
      guard sink.accept(answer(from: first, to: last)) else { return FetchResult(end: .refused) }
      beforeTheLie()
      let isTaken = [UInt8](repeating: 7, count: Int(last - first) + 2).withUnsafeBytes { sink.append($0) }
      return FetchResult(end: isTaken ? .complete : .refused)
    }

    func cancel(_ id: FetchRequest.ID) {}
    func use(_ network: NetworkOptions) {}
    func forget(_ group: FetchRequest.ID) {}
    func share(_ rates: [SharedRate]) {}
    func limit(group: FetchRequest.ID, to rate: UInt64?, of rateClass: Int?) {}
  }

  @Test func aLieCountsWhateverEndsTheFetch() throws {
    let liedFrom = try WorkerLoop.alone { try await Self.liedFrom() }
    #expect(liedFrom == 1000)
  }

  @WorkerLoop private static func liedFrom() async throws -> UInt64? {
    let fixture = try Fixture()
    let url = "http://127.0.0.1:9/a"
    try fixture.drop("\(url)\n", as: "a")
    let claim = try fixture.claim("a")
    let part = try PartFile.open(claim.job, in: fixture.spool)
    let data = PartData(
      claim: claim, request: claim.text.request, part: try #require(part), version: nil,
      space: DiskSpace(fixture.spool, kept: 0), blocks: BlockPool())
    defer { data.leaveSpace() }
    let mirror = MirrorURL(number: 1, url: url, parts: try URLParts(url))
    let engine = Liar(mirror.parts)
    var version = RemoteVersion(engine.answer(from: 0, to: 999), mirror: 1)
    version.size = 1_000_000
    try data.begin(version)
    try [UInt8](repeating: 7, count: 1000).withUnsafeBytes { try data.append($0, host: "h") }
    try data.finishPending()
    let environment = try JobEnvironment(fixture.spool, WorkerOptions()) { _ in }
    let fetch = ChunkedFetch(
      data, to: 1_000_000, MemoryBudget.Share(connections: 2, largest: 300_000),
      first: ChunkPlan.Estimate(flow: 1e9, wait: 0), mirrors: [mirror], engine: engine,
      template: FetchRequest(mirror, data.request, id: 64), isConditional: true,
      AttemptContext(claim, environment, attempt: 1, data.request))
    engine.beforeTheLie = { fetch.stop() }
    let end = await fetch.run()
    engine.beforeTheLie = {}
    guard case .stopped = end else { throw TestSupportError("another end: \(end)") }
    return fetch.liedFrom
  }
}
